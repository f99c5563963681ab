"""The log's heads, and the seals under them: signatures, growth, roots, dates."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from arena.chain import Chain, Commitment
from arena.exceptions import ChainUnavailableError, LogHeadError
from arena.records.heads import Head, SignedHead, read_commitment, signing_message
from arena.records.merkle import CompactRange, leaf_hash, verify_consistency
from arena.records.verification.findings import Check, Code, Report
from arena.runs.seal import Seal
from arena.runs.signing import verify_signature

_NO_HASH = leaf_hash(b"")
"""Stands for a leaf that cannot be read, so that those behind it keep their places."""


@dataclass(frozen=True, slots=True)
class PlacedHead:
    """A head, and where it was found."""

    place: str
    signed: SignedHead


def check_heads(heads: Sequence[PlacedHead], operator: str | None, report: Report) -> None:
    """Check heads against each other and against the operator's key, oldest first."""
    for placed in heads:
        check_signature(placed, operator or heads[0].signed.head.log, report)
    for before, after in pairwise(heads):
        _check_growth(before, after, report)
    if heads and heads[0].signed.head.previous is not None:
        report.uncheckable(Check.HEADS, "heads before the first one here")


def in_order(heads: Sequence[PlacedHead], report: Report) -> list[PlacedHead]:
    """Each head once, oldest first; two of one day are a forked log."""
    known: dict[str, PlacedHead] = {}
    for placed in heads:
        known.setdefault(placed.signed.hash, placed)
    ordered = sorted(known.values(), key=lambda p: (p.signed.head.day, p.signed.head.size))
    for before, after in pairwise(ordered):
        if before.signed.head.day == after.signed.head.day:
            detail = f"another head of {after.signed.head.day} stands at {before.place}"
            report.found(Code.HEAD_TWO_FOR_A_DAY, Check.HEADS, after.place, detail)
    return ordered


class LeafChecker:
    """Follows the log leaf by leaf: places, roots, and when each seal was made."""

    def __init__(
        self, heads: Sequence[PlacedHead], start: CompactRange, place: str, report: Report
    ) -> None:
        """`start` is the log before the first leaf that is given; `place` where it stands."""
        self._heads = heads
        self._range = start.copy()
        self._report = report
        self._last: tuple[str, int] | None = None
        self._uncovered = False
        self._cutoffs = [placed.signed.head.cutoff for placed in heads]
        self._next = bisect_right(heads, start.size, key=lambda p: p.signed.head.size)
        before = heads[self._next - 1].signed.head if self._next else None
        size, root = (before.size, before.root) if before else (0, CompactRange().root)
        if (start.size, start.root) != (size, root):
            detail = f"the subtrees before leaf {start.size} are not those of a head"
            report.found(Code.LOG_ROOT, Check.LOG, place, detail)

    def add(self, place: str, seal: Seal | None, leaf: bytes | None) -> None:
        """Take in the next leaf; None for one that could not be read."""
        self._range.append(leaf or _NO_HASH)
        if self._next >= len(self._heads):
            if not self._uncovered:
                self._report.found(Code.LOG_ROOT, Check.LOG, place, "a leaf that no head covers")
            self._uncovered = True
            return
        if seal is not None:
            self._check_order(place, seal)
            self._check_date(place, seal)
        while self._next < len(self._heads) and self._head.size <= self._range.size:
            self._check_root()
            self._next += 1
            self._last = None

    def finish(self) -> None:
        """No leaf is left: does the last head cover more?"""
        until = self._heads[-1].signed.head.size if self._heads else 0
        if self._range.size < until:
            missing = until - self._range.size
            detail = f"the head covers {until} seals; {missing} of them are missing"
            self._report.found(Code.LOG_LEAF_MISSING, Check.LOG, self._heads[-1].place, detail)

    @property
    def _head(self) -> Head:
        return self._heads[self._next].signed.head

    def _check_root(self) -> None:
        head = self._head
        if head.size < self._range.size:
            return  # two heads of one size are held together by their consistency
        placed = self._heads[self._next]
        if self._range.root == head.root:
            self._report.passed(Check.LOG)
        else:
            detail = (
                f"the root over {head.size} seals is {self._range.root.hex()}; the head of"
                f" {head.day} says {head.root.hex()}"
            )
            self._report.found(Code.LOG_ROOT, Check.LOG, placed.place, detail)

    def _check_order(self, place: str, seal: Seal) -> None:
        key = (seal.validator, seal.sequence)
        if self._last is not None and key <= self._last:
            detail = f"seal {seal.sequence} of {seal.validator} stands behind a later one"
            self._report.found(Code.LOG_ORDER, Check.LOG, place, detail)
        self._last = key

    def _check_date(self, place: str, seal: Seal) -> None:
        head = self._head
        who = f"seal {seal.sequence} of {seal.validator}"
        at, block = seal.time, seal.block.number if seal.block else None
        if at >= self._cutoffs[self._next]:
            detail = f"{who} says {seal.sealed_at}; its head covers what came before {head.cutoff}"
            self._report.found(Code.SEAL_AFTER_HEAD, Check.DATING, place, detail)
            return
        if head.block and block is not None and block > head.block.number:
            detail = f"{who} names block {block}; its head was made at {head.block.number}"
            self._report.found(Code.SEAL_BLOCK, Check.DATING, place, detail)
            return
        due = bisect_right(self._cutoffs, at)
        if due >= self._next:
            self._report.passed(Check.DATING)
            return
        missed = self._heads[due].signed.head
        if missed.block and block is not None and block > missed.block.number:
            detail = (
                f"{who} says {seal.sealed_at} and names block {block}, which came after the head"
                f" of {missed.day} (block {missed.block.number})"
            )
            self._report.found(Code.SEAL_BACK_DATED, Check.DATING, place, detail)
            return
        late = _duration(self._heads[self._next - 1].signed.head.cutoff - at)
        detail = f"{who} belongs into the head of {missed.day}; it is late by {late} or more"
        self._report.found(Code.SEAL_LATE, Check.DATING, place, detail)


async def check_commitments(
    heads: Sequence[PlacedHead],
    stored: Sequence[tuple[str, Commitment]],
    chain: Chain | None,
    report: Report,
) -> None:
    """Compare what is said to be on chain, and what stands there, with the heads."""
    for place, commitment in stored:
        _compare(place, commitment, heads, report)
    if chain is None:
        report.uncheckable(Check.COMMITMENT, "no chain was given")
        return
    if not heads:
        return
    log = heads[-1].signed.head.log
    try:
        stands = await chain.committed(log)
    except ChainUnavailableError:
        report.uncheckable(Check.COMMITMENT, "the chain does not answer")
        return
    if stored and (stands is None or stands.block < stored[-1][1].block):
        said = stored[-1][1].block
        when = f"stands since block {stands.block}" if stands else "is nothing"
        detail = f"said to be on chain since block {said}; what {log} has put there {when}"
        report.found(Code.COMMITMENT_NOT_ON_CHAIN, Check.COMMITMENT, stored[-1][0], detail)
    elif stands is None:
        report.uncheckable(Check.COMMITMENT, "no head was put on chain")
    elif _compare(f"chain, block {stands.block}", stands, heads, report):
        report.passed(Check.COMMITMENT)


def _compare(
    place: str, commitment: Commitment, heads: Sequence[PlacedHead], report: Report
) -> bool:
    try:
        day, size, root = read_commitment(commitment.data)
    except LogHeadError as error:
        report.found(Code.COMMITMENT_BROKEN, Check.COMMITMENT, place, error.message)
        return False
    found = next((p.signed.head for p in heads if p.signed.head.day == day), None)
    if found is None:
        report.uncheckable(Check.COMMITMENT, "the head that was committed is not here")
        return False
    if (found.size, found.root, found.log) != (size, root, commitment.address):
        detail = (
            f"{commitment.address} committed {size} seals under {root.hex()} for {day}; the head"
            f" of that day says {found.size} under {found.root.hex()}"
        )
        report.found(Code.COMMITMENT_OTHER_ROOT, Check.COMMITMENT, place, detail)
        return False
    return True


def check_signature(placed: PlacedHead, expected: str, report: Report) -> None:
    """Check that the log's operator, `expected`, signed a head."""
    signed, head = placed.signed, placed.signed.head
    if not verify_signature(head.log, signing_message(signed.content), signed.signature):
        detail = f"not a signature by {head.log} over the head of {head.day}"
        report.found(Code.HEAD_SIGNATURE, Check.HEADS, placed.place, detail)
    elif head.log != expected:
        detail = f"the head of {head.day} is of {head.log}, not of {expected}"
        report.found(Code.HEAD_OPERATOR, Check.HEADS, placed.place, detail)
    else:
        report.passed(Check.HEADS)


def _check_growth(before: PlacedHead, after: PlacedHead, report: Report) -> None:
    old, new = before.signed.head, after.signed.head
    wrong: tuple[Code, str] | None = None
    if new.size < old.size:
        wrong = Code.HEAD_SIZE_BACK, f"{new.size} seals, and {old.size} the head before"
    elif not verify_consistency(old.size, new.size, old.root, new.root, after.signed.consistency):
        detail = f"nothing proves that the log of {old.day} grew to that of {new.day}"
        wrong = Code.HEAD_INCONSISTENT, detail
    elif new.previous != before.signed.hash:
        detail = f"it names {new.previous} as the head before; that one is {before.signed.hash}"
        wrong = Code.HEAD_PREVIOUS, detail
    elif datetime.fromisoformat(new.closed_at) < datetime.fromisoformat(old.closed_at):
        wrong = Code.HEAD_TIME_BACK, f"closed at {new.closed_at}, before the head before"
    if wrong is not None:
        report.found(wrong[0], Check.HEADS, after.place, f"the head of {new.day}: {wrong[1]}")
    else:
        report.passed(Check.HEADS)


def _duration(time: timedelta) -> str:
    hours, rest = divmod(int(time.total_seconds()), 3600)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {rest // 60} min"
