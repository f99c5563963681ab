"""Names for problems that come without one.

A problem's id is shown to agents and stands in public records, so it must tell nothing
of the answer and cannot be found by hashing guesses: it is a keyed hash of the content.
Part of the problems room: no I/O.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import uuid

from scoring.types import Json

LOCAL_KEY = b"sn15-arena local problems"
"""The key for local use, where nobody is to be kept from guessing. An arena sets its own."""

NAMING_FIELDS = frozenset(
    {
        "problem_id",
        "category",
        "bucket",
        "difficulty",
        "title",
        "pool",
        "cluster",
        "reward_title_embeddings",
    }
)
"""What may be added to a problem later without making it another one."""


def problem_id_of(content: dict[str, Json], key: bytes = LOCAL_KEY) -> str:
    """A UUID (version 8, RFC 9562) from HMAC-SHA-256 over the query, reward and voucher.

    The same content and key give the same id, whatever the order of its keys.
    """
    named = {k: v for k, v in content.items() if k not in NAMING_FIELDS}
    text = json.dumps(named, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    digest = bytearray(hmac.digest(key, text.encode("ascii"), hashlib.sha256)[:16])
    digest[6] = (digest[6] & 0x0F) | 0x80
    digest[8] = (digest[8] & 0x3F) | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))
