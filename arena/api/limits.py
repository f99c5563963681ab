"""Rate limits: token buckets by address and by hotkey, in the memory of each process.

With N processes a client may have up to N times a rate: the limits keep one client from
taking a process for itself, and need no exact count. What must be counted once, such as a
miner's cooldown, is counted in the database, by the room that owns it.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from arena.api.errors import Code, Refusal

MAX_BUCKETS = 20_000
"""How many clients are remembered; beyond it the one not seen for longest is forgotten,
which can only let somebody through."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class RateLimit:
    """A token bucket for each key: `rate` a second, `burst` at once."""

    def __init__(
        self,
        rate: float,
        burst: float,
        *,
        now: Callable[[], float] = time.monotonic,
        max_keys: int = MAX_BUCKETS,
    ) -> None:
        self._rate = rate
        self._burst = max(burst, 1.0)
        self._now = now
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one token; 0 when there was one, else the seconds until there is."""
        now = self._now()
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(self._burst, now)
            if len(self._buckets) > self._max_keys:
                self._buckets.popitem(last=False)
        else:
            self._buckets.move_to_end(key)
            gained = max(0.0, now - bucket.at) * self._rate
            bucket.tokens = min(self._burst, bucket.tokens + gained)
            bucket.at = now
        if bucket.tokens < 1.0:
            return (1.0 - bucket.tokens) / self._rate
        bucket.tokens -= 1.0
        return 0.0

    def check(self, key: str, who: str) -> None:
        """Take one token. Raises Refusal (429), which says when to come again."""
        wait = self.take(key)
        if wait:
            raise Refusal(
                Code.RATE_LIMIT_EXCEEDED, f"too many requests from this {who}", retry_after=wait
            )


def address_key(host: str | None) -> str:
    """The key of a client's address: an IPv6 client owns its whole /64."""
    if not host:
        return "?"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:64]
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)
