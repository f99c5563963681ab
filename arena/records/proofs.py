"""Proofs of inclusion as files: that a seal stands in the log under a signed head.

Pure: no keys, no disk, no database.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from arena.exceptions import LogHeadError, ProofError, SealError
from arena.records.heads import SignedHead, hashes
from arena.records.merkle import leaf_hash, verify_inclusion
from arena.runs.canonical import canonical
from arena.runs.seal import Sealed
from scoring.types import JsonObject

PROOF_SCHEMA = 1
MAX_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """A seal, its place in the log, and the path from it to a head's root."""

    sealed: Sealed
    index: int
    path: tuple[bytes, ...]
    head: SignedHead
    """Without its proof of consistency, which nothing here could be held against."""

    @property
    def holds(self) -> bool:
        """Whether the path leads from the seal to the head's root. Nothing of signatures.

        Raises LogHeadError for a head that is none.
        """
        head = self.head.head
        return verify_inclusion(
            leaf_hash(self.sealed.leaf), self.index, head.size, self.path, head.root
        )

    def to_json(self) -> JsonObject:
        """The JSON object of a proof file."""
        return {
            "schema": PROOF_SCHEMA,
            "kind": "inclusion",
            "index": self.index,
            "size": self.head.head.size,
            "leaf": orjson.loads(self.sealed.to_line()),
            "leaf_hash": leaf_hash(self.sealed.leaf).hex(),
            "path": [step.hex() for step in self.path],
            "head": self.head.to_json(),
        }

    def to_line(self) -> bytes:
        """One line of canonical JSON."""
        return canonical(self.to_json())

    @classmethod
    def from_bytes(cls, content: bytes) -> InclusionProof:
        """Read a proof, written by `to_json` with whatever white space. Raises ProofError."""
        if len(content) > MAX_BYTES:
            raise ProofError(f"a proof has at most {MAX_BYTES} bytes")
        try:
            value = cast("dict[str, Any]", orjson.loads(content))
            if value["schema"] != PROOF_SCHEMA or value["kind"] != "inclusion":
                raise ProofError(f"not a proof of inclusion of schema {PROOF_SCHEMA}")
            index: object = value["index"]
            if type(index) is not int or index < 0:
                raise ProofError("its index is no number")
            proof = cls(
                Sealed.from_line(canonical(value["leaf"])),
                index,
                hashes(cast("Sequence[str]", value["path"])),
                SignedHead.from_json(value["head"]),
            )
            exact = proof.to_json() == value and not proof.head.consistency
        except (SealError, LogHeadError) as error:
            raise ProofError(f"not a proof of inclusion: {error.message}") from error
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ProofError(f"not a proof of inclusion of schema {PROOF_SCHEMA}") from error
        if not exact:
            raise ProofError("its parts do not agree: it was changed after it was made")
        return proof
