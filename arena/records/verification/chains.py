"""The chains of validators: every seal names the one before, and none is left out.

Seals come in any order, since a late one is logged after younger ones. Of each seal its
hash is kept, 32 bytes, packed by number: enough to link what comes later, and to tell a
seal that stands twice from two seals with one number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from arena.records.merkle import HASH_BYTES
from arena.records.verification.findings import Check, Code, Report
from arena.runs.seal import Seal


@dataclass(slots=True)
class _Run:
    """Seals without a gap, from number `first` on."""

    first: int
    previous: str | None
    first_time: datetime
    first_block: int | None
    last_time: datetime
    last_block: int | None
    place: str
    """Where the first one stands."""
    anchored: bool = False
    """Whether the first one is proven to stand in an earlier head."""
    hashes: bytearray = field(default_factory=bytearray)

    @property
    def after(self) -> int:
        """The number after its last."""
        return self.first + len(self.hashes) // HASH_BYTES

    def hash(self, number: int) -> bytes:
        """The hash of seal `number`."""
        at = (number - self.first) * HASH_BYTES
        return bytes(self.hashes[at : at + HASH_BYTES])

    def number_of(self, digest: bytes) -> int | None:
        """The number of the seal with this hash; a look at all of them."""
        at = self.hashes.find(digest)
        while at >= 0 and at % HASH_BYTES:
            at = self.hashes.find(digest, at + 1)
        return None if at < 0 else self.first + at // HASH_BYTES


class ChainChecker:
    """Links the seals of all validators, whatever order they come in."""

    def __init__(self, report: Report, *, whole: bool) -> None:
        """`whole`: what comes before a chain's first seal here is anchored, or missing."""
        self._report = report
        self._whole = whole
        self._runs: dict[str, list[_Run]] = {}

    def add(self, place: str, seal: Seal, digest: bytes, *, anchor: bool = False) -> bool:
        """Take in a seal with its hash; `anchor` for one that only shows what came before.

        False when its number is taken, by itself or by another.
        """
        runs = self._runs.setdefault(seal.validator, [])
        at = bisect_right(runs, seal.sequence, key=lambda run: run.first)
        before = runs[at - 1] if at else None
        if before is not None and seal.sequence < before.after:
            if anchor and before.hash(seal.sequence) == digest:
                return True
            return self._taken(place, seal, digest, before)
        if before is not None and seal.sequence == before.after:
            self._link(place, seal, before)
            before.hashes += digest
            before.last_time = seal.time
            before.last_block = seal.block.number if seal.block else before.last_block
            run = before
        else:
            number = seal.block.number if seal.block else None
            run = _Run(seal.sequence, seal.previous, seal.time, number, seal.time, number, place)
            run.anchored = anchor
            run.hashes += digest
            runs.insert(at, run)
            at += 1
        if at < len(runs) and runs[at].first == run.after:
            self._join(run, runs.pop(at), seal.validator)
        return True

    def hash_of(self, validator: str, number: int) -> bytes | None:
        """The hash of a validator's seal, if it was given."""
        runs = self._runs.get(validator, [])
        at = bisect_right(runs, number, key=lambda run: run.first)
        if not at or number >= runs[at - 1].after:
            return None
        return runs[at - 1].hash(number)

    def finish(self) -> None:
        """All seals are in: what is missing between them?"""
        for validator, runs in sorted(self._runs.items()):
            self._check_beginning(validator, runs[0])
            for left, right in pairwise(runs):
                missing = f"{_seals(left.after, right.first - 1)} of {validator}"
                if right.anchored:
                    self._report.uncheckable(
                        Check.CHAIN, "seals of days that are not here", right.first - left.after
                    )
                else:
                    self._report.found(
                        Code.CHAIN_GAP, Check.CHAIN, right.place, f"{missing}: missing"
                    )

    def validators(self) -> Iterator[tuple[str, int, int]]:
        """Each validator with the numbers of its first and last seal."""
        for validator, runs in sorted(self._runs.items()):
            yield validator, runs[0].first, runs[-1].after - 1

    def _check_beginning(self, validator: str, run: _Run) -> None:
        if run.first == 1 or run.anchored:
            return
        if self._whole:
            detail = (
                f"{_seals(1, run.first - 1)} of {validator}: missing, and no anchor proves what"
                f" seal {run.first} goes on from"
            )
            self._report.found(Code.CHAIN_GAP, Check.CHAIN, run.place, detail)
        else:
            self._report.uncheckable(Check.CHAIN, "what a chain holds before its first seal here")

    def _taken(self, place: str, seal: Seal, digest: bytes, run: _Run) -> bool:
        who = f"seal {seal.sequence} of {seal.validator}"
        if run.hash(seal.sequence) == digest:
            self._report.found(Code.CHAIN_DUPLICATE, Check.CHAIN, place, f"{who} stands twice")
        else:
            detail = f"two different seals with one number: {who}"
            self._report.found(Code.CHAIN_FORK, Check.CHAIN, place, detail)
        return False

    def _link(self, place: str, seal: Seal, run: _Run) -> None:
        """Check a seal against the one before, which ends `run`."""
        who = f"seal {seal.sequence} of {seal.validator}"
        last = run.hash(run.after - 1).hex()
        held = True
        if seal.previous != last:
            held = False
            named = run.number_of(bytes.fromhex(seal.previous or ""))
            if seal.previous and named is not None:
                detail = f"{who} names seal {named} as the one before, as seal {named + 1} does"
                self._report.found(Code.CHAIN_FORK, Check.CHAIN, place, detail)
            else:
                detail = f"{who} names {seal.previous} as the seal before; that one is {last}"
                self._report.found(Code.CHAIN_PREVIOUS, Check.CHAIN, place, detail)
        if seal.time < run.last_time:
            held = False
            detail = f"{who} says {seal.sealed_at}; the one before it was sealed later"
            self._report.found(Code.CHAIN_TIME_BACK, Check.CHAIN, place, detail)
        if seal.block and run.last_block is not None and seal.block.number < run.last_block:
            held = False
            detail = f"{who} names block {seal.block.number}, the one before {run.last_block}"
            self._report.found(Code.CHAIN_BLOCK_BACK, Check.CHAIN, place, detail)
        if held:
            self._report.passed(Check.CHAIN)

    def _join(self, left: _Run, right: _Run, validator: str) -> None:
        """What came earlier turned out to follow on `left`."""
        who = f"seal {right.first} of {validator}"
        last = left.hash(left.after - 1).hex()
        held = True
        if right.previous != last:
            held = False
            detail = f"{who} names {right.previous} as the seal before; that one is {last}"
            self._report.found(Code.CHAIN_PREVIOUS, Check.CHAIN, right.place, detail)
        if right.first_time < left.last_time:
            held = False
            detail = f"{who} says it was sealed before the one before it"
            self._report.found(Code.CHAIN_TIME_BACK, Check.CHAIN, right.place, detail)
        if None not in (right.first_block, left.last_block) and (
            (right.first_block or 0) < (left.last_block or 0)
        ):
            held = False
            detail = f"{who} names block {right.first_block}, the one before {left.last_block}"
            self._report.found(Code.CHAIN_BLOCK_BACK, Check.CHAIN, right.place, detail)
        if held:
            self._report.passed(Check.CHAIN)
        left.hashes += right.hashes
        left.last_time = right.last_time
        left.last_block = right.last_block if right.last_block is not None else left.last_block


def _seals(first: int, last: int) -> str:
    return f"seal {first}" if first == last else f"seals {first} to {last}"
