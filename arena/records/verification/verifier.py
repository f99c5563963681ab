"""Verification from beginning to end: files, heads, log, chains, records, later verdicts.

Streams: of a record that was checked some seventy bytes stay, most of them the hash of its
seal. What needs no order is done in batches, in this process as long as there is little and
in several when there is much.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from array import array
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from arena.chain import Chain
from arena.records.heads import SignedHead
from arena.records.proofs import InclusionProof
from arena.records.verification import work
from arena.records.verification.chains import ChainChecker
from arena.records.verification.contents import Opened, check_seal, open_record
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.heads import (
    LeafChecker,
    PlacedHead,
    check_commitments,
    check_heads,
    check_signature,
    in_order,
)
from arena.records.verification.index import LaterVerdict, Lookup, RecordIndex, repeated
from arena.records.verification.materials import Materials, Workbench, check_materials
from arena.records.verification.scores import check_ceiling, check_citations, check_score
from arena.records.verification.sources import ExportSource, Source
from arena.records.verification.work import (
    LeafLine,
    RecordLine,
    SeenLeaf,
    SeenRecord,
    Task,
    Worker,
)

_Batch = TypeVar("_Batch")
_Seen = TypeVar("_Seen")
ALONE_BATCHES = 6
"""Batches that this process checks itself before it asks others for help."""


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom the reader trusts, and what it knows of the log already."""

    validators: frozenset[str] = frozenset()
    operator: str | None = None
    head: str | None = None
    """SHA-256 of a head that must be among those found."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to verify. `jobs` are processes; the materials add to those of the sources."""

    trust: Trust = field(default_factory=Trust)
    suites: tuple[Path, ...] = ()
    catalog: Path | None = None
    recompute: bool = True
    jobs: int = 1
    progress: Callable[[int], None] = lambda count: None
    """Told how many records were checked so far."""


async def verify(
    sources: Sequence[Source], options: Options, *, chain: Chain | None = None
) -> Report:
    """Check everything. Findings are in the report; raises only for what the caller gave."""
    report = Report()
    # In the order of the log: what anchors a later day stands in an earlier one.
    sources = sorted(sources, key=lambda s: s.first if isinstance(s, ExportSource) else 0)
    for source in sources:
        source.check_files(report)
    materials = await _materials(sources, options, report)
    task = Task(options.trust.validators, materials, options.recompute)
    crew = Crew(task, options.jobs)
    try:
        verification = _Verification(sources, options, report, crew)
        await verification.run(chain)
        await verification.later_verdicts(materials)
    finally:
        crew.close()
    return report


async def _materials(sources: Sequence[Source], options: Options, report: Report) -> Materials:
    materials = Materials()
    for source in sources:
        held = await source.materials()
        materials = Materials(
            {**materials.problems, **held.problems}, {**materials.sources, **held.sources}
        )
    check_materials(materials, report)
    return materials.with_suites(options.suites).with_catalog(options.catalog)


class Crew:
    """Who does the work that needs no order."""

    def __init__(self, task: Task, jobs: int) -> None:
        self._task = task
        self._jobs = jobs
        self._alone = Worker(task)
        self._done = 0
        self._pool: ProcessPoolExecutor | None = None

    def leaves(
        self, batches: AsyncIterator[list[LeafLine]]
    ) -> AsyncIterator[tuple[Report, list[SeenLeaf]]]:
        """Leaves, checked, in order."""
        return self._through(batches, self._alone.leaves, work.check_leaves)

    def records(
        self, batches: AsyncIterator[list[RecordLine]]
    ) -> AsyncIterator[tuple[Report, list[SeenRecord]]]:
        """Records, checked, in order."""
        return self._through(batches, self._alone.records, work.check_records)

    async def _through(
        self,
        batches: AsyncIterator[_Batch],
        alone: Callable[[_Batch], _Seen],
        helped: Callable[[_Batch], _Seen],
    ) -> AsyncIterator[_Seen]:
        """Each batch's result, in order; at most a few batches are under way."""
        waiting: deque[Awaitable[_Seen]] = deque()
        async for batch in batches:
            waiting.append(self._submit(batch, alone, helped))
            while len(waiting) > (2 * self._jobs if self._pool else 0):
                yield await waiting.popleft()
        while waiting:
            yield await waiting.popleft()

    def _submit(
        self, batch: _Batch, alone: Callable[[_Batch], _Seen], helped: Callable[[_Batch], _Seen]
    ) -> Awaitable[_Seen]:
        loop = asyncio.get_running_loop()
        self._done += 1
        if self._pool is None and (self._jobs < 2 or self._done <= ALONE_BATCHES):
            return loop.run_in_executor(None, alone, batch)
        if self._pool is None:
            # Spawned: a fork would copy the event loop and the database's connections.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self._jobs, context, work.begin, (self._task,))
        return loop.run_in_executor(self._pool, helped, batch)

    def close(self) -> None:
        """Let the helpers go."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


class _Verification:
    """One verification: what is known of all sources together."""

    def __init__(
        self, sources: Sequence[Source], options: Options, report: Report, crew: Crew
    ) -> None:
        self._sources = sources
        self._options = options
        self._report = report
        self._crew = crew
        self._chains = ChainChecker(report, whole=all(source.whole for source in sources))
        self._index = RecordIndex()
        self._heads: list[PlacedHead] = []
        self._leaves: dict[int, int] = {}
        """Leaves by the number of their source."""
        self._checked = 0

    async def run(self, chain: Chain | None) -> None:
        """All that needs the records once."""
        own = [await self._read_heads(source) for source in self._sources]
        await self._check_heads(chain)
        for number, (source, heads) in enumerate(zip(self._sources, own, strict=True)):
            for place, proof in await source.anchors(self._report):
                self._add_anchor(place, proof)
            if source.has_log:
                await self._check_log(number, source, heads)
        for number, source in enumerate(self._sources):
            await self._check_records(number, source)
        self._chains.finish()
        self._index.check_twice([source.name for source in self._sources], self._report)

    async def later_verdicts(self, materials: Materials) -> None:
        """Verdicts that came in records of their own, each against the run that it names."""
        if not self._index.verdicts:
            return
        lookup = self._index.freeze()
        bench = Workbench(Materials(materials.problems, materials.sources))
        judged: set[str] = set()
        for verdict in self._index.verdicts:
            run = await self._linked_run(verdict, lookup, judged)
            if run is not None:
                await self._check_verdict(verdict, run, bench)

    # The log -------------------------------------------------------------------------

    async def _read_heads(self, source: Source) -> list[PlacedHead]:
        if not source.has_log:
            return []
        heads = in_order(await source.heads(self._report), self._report)
        self._heads += heads
        return heads

    async def _check_heads(self, chain: Chain | None) -> None:
        report, trust = self._report, self._options.trust
        if not any(source.has_log for source in self._sources):
            reason = "records of a race are not in a log yet"
            report.uncheckable(Check.HEADS, reason)
            report.uncheckable(Check.LOG, reason)
            return
        logs = sum(source.has_log for source in self._sources)
        self._heads = in_order(self._heads, report if logs > 1 else Report())
        check_heads(self._heads, trust.operator, report)
        if trust.operator is None:
            report.uncheckable(Check.HEADS, "no --operator was named")
        if trust.head is not None:
            if any(placed.signed.hash == trust.head for placed in self._heads):
                report.passed(Check.HEADS)
            else:
                detail = f"the head {trust.head[:64]} that was given is not among them"
                report.found(Code.HEAD_OTHER, Check.HEADS, "heads", detail)
        stored = [found for source in self._sources for found in await source.commitments(report)]
        await check_commitments(self._heads, stored, chain, report)

    def _add_anchor(self, place: str, proof: InclusionProof) -> None:
        """A seal of an earlier day, which proves where a chain goes on."""
        head = (proof.head.content, proof.head.signature)
        known = any((p.signed.content, p.signed.signature) == head for p in self._heads)
        found = Report()
        sealed = check_seal(place, proof.sealed.to_line(), found, frozenset())
        if sealed is None or found.failed or not known or not proof.holds:
            detail = "not a proof that the seal stands under one of the heads here"
            self._report.found(Code.CHAIN_ANCHOR, Check.CHAIN, place, detail)
            return
        self._chains.add(place, sealed.seal, bytes.fromhex(sealed.hash), anchor=True)

    async def _check_log(self, number: int, source: Source, heads: Sequence[PlacedHead]) -> None:
        sealed = array("Q")
        checker = LeafChecker(heads, source.start(self._report), source.name, self._report)
        async for report, seen in self._crew.leaves(source.leaves(self._report)):
            self._report.add(report)
            self._leaves[number] = self._leaves.get(number, 0) + len(seen)
            for leaf in seen:
                checker.add(leaf.place, leaf.seal, leaf.leaf_hash)
                if leaf.seal is not None:
                    self._chains.add(leaf.place, leaf.seal, leaf.seal_hash)
                    sealed.append(work.short_hash(leaf.seal.record))
        checker.finish()
        for first, again in repeated(sealed):
            detail = f"the record of leaf {first + 1} here was sealed a second time"
            place = f"{source.name}, leaf {again + 1}"
            self._report.found(Code.SEAL_TWICE, Check.LOG, place, detail)

    # The records ---------------------------------------------------------------------

    async def _check_records(self, number: int, source: Source) -> None:
        last: dict[str, int] = {}
        count = 0
        async for report, seen in self._crew.records(source.records(self._report)):
            self._report.add(report)
            count += len(seen)
            for record in seen:
                self._index.add(record, number)
                if record.seal is not None:
                    self._place(source, record, last)
            self._checked += len(seen)
            self._options.progress(self._checked)
        withheld = self._leaves.get(number, 0) - count
        if withheld > 0:
            reason = "withheld: only seal and signature are here"
            self._report.uncheckable(Check.CONTENT, reason, withheld)

    def _place(self, source: Source, record: SeenRecord, last: dict[str, int]) -> None:
        """Where a record's seal stands in the log, or else in its validator's chain."""
        seal = record.seal
        assert seal is not None
        if source.has_log:
            held = self._chains.hash_of(seal.validator, seal.sequence)
            if held == record.seal_hash:
                self._report.passed(Check.INCLUSION)
            elif held is None and source.may_be_unlogged:
                self._report.uncheckable(Check.INCLUSION, "stored, and not logged yet")
                self._chains.add(record.place, seal, record.seal_hash)
            else:
                detail = f"seal {seal.sequence} of {seal.validator} is not in the log"
                self._report.found(Code.LOG_NOT_IN_LOG, Check.INCLUSION, record.place, detail)
            return
        if source.ordered and seal.sequence < last.get(seal.validator, 0):
            detail = f"seal {seal.sequence} stands behind seal {last[seal.validator]}"
            self._report.found(Code.CHAIN_ORDER, Check.CHAIN, record.place, detail)
        last[seal.validator] = max(seal.sequence, last.get(seal.validator, 0))
        self._chains.add(record.place, seal, record.seal_hash)

    # Later verdicts ------------------------------------------------------------------

    async def _linked_run(
        self, verdict: LaterVerdict, lookup: Lookup, judged: set[str]
    ) -> Opened | None:
        """The run that a verdict is about; None when the link does not hold or is not here."""
        report = self._report
        found = lookup.run_of(verdict)
        if found is None:
            if lookup.has_run(verdict.run):
                detail = f"it names {verdict.record_hash}; its run's record has another hash"
                report.found(Code.VERDICT_OTHER_RECORD, Check.VERDICTS, verdict.place, detail)
            elif all(not isinstance(source, ExportSource) for source in self._sources):
                detail = f"no record has the hash {verdict.record_hash}"
                report.found(Code.VERDICT_UNLINKED, Check.VERDICTS, verdict.place, detail)
            else:
                report.uncheckable(Check.VERDICTS, "the run's record is not here")
            return None
        source, ref, had_verdict = found
        if had_verdict or verdict.record_hash in judged:
            detail = "the run has a verdict already"
            report.found(Code.VERDICT_SECOND, Check.VERDICTS, verdict.place, detail)
            return None
        judged.add(verdict.record_hash)
        content = await self._sources[source].read(ref, verdict.record_hash)
        opened = open_record(verdict.place, content or b"", None, Report())
        if opened is None or opened.hash != verdict.record_hash:
            report.uncheckable(Check.VERDICTS, "the run's record cannot be read")
            return None
        if work.short_name(str(opened.value["run_id"])) != verdict.run:
            detail = f"the record {verdict.record_hash} is of another run"
            report.found(Code.VERDICT_OTHER_RECORD, Check.VERDICTS, verdict.place, detail)
            return None
        return opened

    async def _check_verdict(self, verdict: LaterVerdict, run: Opened, bench: Workbench) -> None:
        report = self._report
        content = await self._sources[verdict.source].read(verdict.ref, "")
        opened = open_record(verdict.place, content or b"", None, Report())
        if opened is None or run.trace is None:
            report.uncheckable(Check.VERDICTS, "the verdict's record cannot be read")
            return
        value = cast("dict[str, Any]", opened.value)
        outcome = cast("dict[str, Any] | None", run.value["outcome"])
        report.passed(Check.VERDICTS)
        check_score(verdict.place, value, bool(outcome and outcome["success"]), report)
        check_citations(verdict.place, value["verdict"], run.trace, report)
        problem = bench.problem(cast("dict[str, Any]", run.value["problem"]).get("content_hash"))
        check_ceiling(verdict.place, value["verdict"], run, problem, report)


def verify_proof(proof: InclusionProof, trust: Trust, trusted: Sequence[SignedHead]) -> Report:
    """Check a proof of inclusion, against heads that the reader has when there are any."""
    report = Report()
    place = f"leaf {proof.index}"
    check_seal(place, proof.sealed.to_line(), report, trust.validators)
    head = proof.head.head
    placed = PlacedHead("the proof's head", proof.head)
    check_signature(placed, trust.operator or head.log, report)
    if trust.operator is None:
        report.uncheckable(Check.HEADS, "no --operator was named")
    if proof.holds:
        report.passed(Check.INCLUSION)
    else:
        detail = f"the path does not lead to the root of the head of {head.day}"
        report.found(Code.LOG_INCLUSION, Check.INCLUSION, place, detail)
    known = {signed.hash for signed in trusted} | ({trust.head} if trust.head else set())
    if not known:
        report.uncheckable(Check.HEADS, "no head was given to hold the proof's against")
    elif proof.head.hash in known:
        report.passed(Check.HEADS)
    else:
        detail = f"the proof is under the head {proof.head.hash}, which is none of those given"
        report.found(Code.HEAD_OTHER, Check.HEADS, "the proof's head", detail)
    return report
