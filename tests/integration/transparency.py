"""A small honest history for tests of the log: runs that can be decided again, two validators,
three days, a seal that came late and a verdict that came later; stored, closed and exported."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import zstandard
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import create_async_engine

from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import Database
from arena.problems.suite import load_suite
from arena.records.export import export_day
from arena.records.heads import Head, SignedHead, signing_message
from arena.records.layout import HEADS, MANIFEST, RECORDS, SEALS, file_hash
from arena.records.log import TransparencyLog
from arena.records.merkle import CompactRange, GrownTree, consistency_proof, leaf_hash
from arena.records.store import RecordStore
from arena.records.verification.findings import Report
from arena.records.verification.sources import ExportSource, RaceSource, Source, read_lines
from arena.records.verification.verifier import Options, Trust, verify
from arena.runs.canonical import canonical
from arena.runs.frames import encode_frame, read_spool
from arena.runs.ledger import Head as ChainHead
from arena.runs.ledger import seal_after
from arena.runs.record import EncodedRecord, RunRecord
from arena.runs.rescoring import rejudge_axis, rescore
from arena.runs.seal import BlockRef, Sealed, SealedRecord
from arena.runs.seal import signing_message as seal_message
from arena.runs.signing import KeypairSigner, Signer
from arena.runs.verdicts import VerdictRecord
from arena.settings import ArenaSettings
from judge.facts import read_facts
from judge.prompts import PROMPT_VERSION
from judge.verdict import Verdict
from sandbox.catalog import open_catalog
from sandbox.catalog.interface import Catalog
from sandbox.trace import LlmEvent, ToolEvent, Trace, Usage
from scoring.coefficient import coefficient
from scoring.outcome import scoring_pipeline_version
from scoring.titles import NoTitles
from scoring.types import JsonObject, Problem
from tests.integration.racing import write_world
from tests.unit.arena.builders import agent, race_entry
from tests.unit.arena.builders import record as plain_record

OPERATOR = KeypairSigner("//Operator")
ALICE, BOB = KeypairSigner("//Alice"), KeypairSigner("//Bob")
DAYS = (date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3))
AGENT = agent()
THOUGHT = (
    "The search returned mug {0} at {1} pesos and mug 6 at 60 pesos. I prefer product {0} over 6,"
    " because it costs {1} and stays within the price that was asked."
)


@dataclass(frozen=True)
class World:
    """Catalogue and problems of the history."""

    directory: Path
    problems: tuple[Problem, ...]

    @classmethod
    def written(cls, directory: Path) -> World:
        """Written to `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        write_world(directory, products=3)
        return cls(directory, load_suite(directory / "suite.jsonl").problems)

    @property
    def catalog(self) -> Path:
        return self.directory / "catalog.jsonl"

    def run(self, number: int, *, judged: bool = True, **changes: Any) -> RunRecord:
        """The record of a run that searches, compares and recommends a product."""
        problem = self.problems[number % 3]
        trace = _trace(problem, "1")
        catalog = _opened(self.catalog)
        outcome = rescore(problem, trace, [], catalog, NoTitles(), completed=True)
        axis = rejudge_axis(problem, trace, [], AGENT.source)
        record = replace(
            plain_record(problem, run_id=f"run-{number}", attempt=number),
            trace=trace.to_json(),
            outcome=outcome.to_json(),
            axis=axis.to_json(),
        )
        conditions = replace(
            record.conditions,
            catalog_hash=catalog.content_hash,
            scoring_version=scoring_pipeline_version(NoTitles()),
            standins=("model:m",),
        )
        record = replace(record, conditions=conditions)
        if judged:
            record = replace(record, **self.judged(record))
        return replace(record, **changes)

    def judged(self, record: RunRecord) -> dict[str, Any]:
        """What the kindest judge that the facts allow says of a run."""
        trace = Trace.from_json(json.loads(json.dumps(record.trace)))
        facts = read_facts(trace, self.problems[0].query, [])
        verdict = Verdict(facts.ceiling, facts.gate, facts.evidence[:2], ("j",), PROMPT_VERSION)
        worth = coefficient(verdict.quality)
        assert record.outcome is not None
        return {
            "verdict": verdict.to_json(),
            "coefficient": worth,
            "final_score": float(bool(record.outcome["success"])) * worth,
        }

    def verdict(self, run: RunRecord) -> VerdictRecord:
        """A later verdict on a run."""
        return VerdictRecord(
            run_id=run.run_id,
            race_id=run.race_id,
            record_hash=run.encode().hash,
            judged_at="2026-01-02T09:00:00+00:00",
            judge={"models": ["j"]},
            standins=(),
            **self.judged(run),
        )


@lru_cache(1)
def _opened(path: Path) -> Catalog:
    return open_catalog(path)


def _trace(problem: Problem, product: str) -> Trace:
    """A model that searches, thinks and recommends, as the gateway saw it."""
    found: list[Any] = [{"product_id": i, "title": f"mug {i}", "price": 10 * int(i)} for i in "16"]
    messages: tuple[JsonObject, ...] = (
        {"role": "user", "content": problem.query},
        {"role": "tool", "content": json.dumps(found), "tool_call_id": "a"},
    )
    thought = THOUGHT.format(product, 10 * int(product))
    return Trace(
        messages,
        (
            _completion(0, (0,), "I look for what was asked.", "find_product", q="mug"),
            ToolEvent(1, 2.0, 1.0, "tools", "find_product", {"q": "mug"}, 200, found),
            _completion(2, (0, 1), thought, "recommend_product", product_ids=product),
            ToolEvent(
                3, 6.0, 1.0, "tools", "recommend_product", {"product_ids": product}, 200, "done"
            ),
            _completion(4, (0, 1), "That is all.", "terminate", status="success"),
            ToolEvent(5, 9.0, 1.0, "tools", "terminate", {"status": "success"}, 200, "done"),
        ),
    )


def _completion(seq: int, prompt: tuple[int, ...], text: str, name: str, **given: str) -> LlmEvent:
    call: JsonObject = {
        "id": "a",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(given)},
    }
    message: JsonObject = {"role": "assistant", "content": text, "tool_calls": [call]}
    return LlmEvent(
        seq,
        float(seq),
        1.0,
        0.5,
        "m",
        "s",
        standin=True,
        prompt=prompt,
        params={},
        status=200,
        choices=({"index": 0, "message": message, "finish_reason": "tool_calls"},),
        usage=Usage(50, 40),
    )


class Validator:
    """Seals records one after the other."""

    def __init__(self, signer: Signer) -> None:
        self.signer = signer
        self.head = ChainHead()

    def seal(self, record: EncodedRecord, at: datetime, block: int = 10) -> SealedRecord:
        """The next of its chain."""
        sealed = seal_after(self.head, record, self.signer, now=at, block=_block(block))
        self.head = ChainHead.of(sealed.sealed)
        return sealed


def _block(number: int) -> BlockRef:
    return BlockRef(number, "0x" + f"{number:064x}")


def morning(day: date, hour: int = 8, minute: int = 0) -> datetime:
    return datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)


def closing(day: date) -> datetime:
    return morning(day + timedelta(days=1), 0, 5)


@dataclass(frozen=True)
class History:
    """Exports of three days, by day; and the race that the records came from."""

    world: World
    exports: tuple[Path, ...]
    race: Path


async def make_history(database: Database, directory: Path) -> History:
    """Days one to three: store, close, export. Bob's fourth seal is stored a day late."""
    world = World.written(directory / "world")
    alice, bob = Validator(ALICE), Validator(BOB)
    entry = race_entry(agents=(AGENT,), problems=world.problems)
    store, log = RecordStore(database.engine), TransparencyLog(database.engine)
    await store.register(entry)
    open_run = world.run(20, judged=False)
    first = [alice.seal(world.run(n).encode(), morning(DAYS[0], 8, n)) for n in range(5)]
    first += [bob.seal(world.run(10 + n).encode(), morning(DAYS[0], 9, n)) for n in range(3)]
    late = bob.seal(world.run(13).encode(), morning(DAYS[0], 9, 30))
    second = [alice.seal(open_run.encode(), morning(DAYS[1]), 20), late]
    second += [alice.seal(world.verdict(open_run).encode(), morning(DAYS[1], 9), 21)]
    second += [bob.seal(world.run(14).encode(), morning(DAYS[1], 9), 22)]
    third = [alice.seal(world.run(30 + n).encode(), morning(DAYS[2], 8, n), 30) for n in range(3)]
    exports = []
    for number, (day, records) in enumerate(zip(DAYS, (first, second, third), strict=True)):
        await store.put(records)
        await log.close(day, OPERATOR, now=closing(day), block=_block(15 + 10 * number))
        out = directory / f"export-{day}"
        await export_day(database.engine, day, out, public=False)
        exports.append(out)
    race = directory / "race"
    race.mkdir()
    by_alice = [r for r in (*first, *second, *third) if r.sealed.seal.validator == ALICE.address]
    write_spool(race / RECORDS, by_alice)
    shutil.copytree(exports[0] / "agents", race / "agents")
    shutil.copy(exports[2] / "problems.jsonl.zst", race)
    return History(world, tuple(exports), race)


def write_spool(path: Path, records: Sequence[SealedRecord]) -> None:
    """Records in the frames of a spool."""
    path.write_bytes(b"".join(encode_frame(r.record, r.sealed) for r in records))


def made_once(server: EmbeddedPostgres, directory: Path) -> History:
    """The history, in a database of its own."""

    async def make() -> History:
        admin = create_async_engine(server.url, isolation_level="AUTOCOMMIT")
        async with admin.connect() as connection:
            await connection.execute(text("CREATE DATABASE history"))
        url = make_url(server.url).set(drivername="postgresql", database="history")
        settings = ArenaSettings(
            database_url=SecretStr(url.render_as_string(hide_password=False)), data_dir=directory
        )
        database = Database(settings)
        try:
            await database.ready()
            return await make_history(database, directory)
        finally:
            await database.close()
            async with admin.connect() as connection:
                await connection.execute(text("DROP DATABASE history WITH (FORCE)"))
            await admin.dispose()

    return asyncio.run(make())


class Forger:
    """An export taken apart, to be changed and put together as one that looks whole.

    What it cannot do is sign for others: each test says whose keys it has.
    """

    def __init__(self, export: Path, directory: Path) -> None:
        self._original, self._directory = export, directory
        self.seals = [bytes(line) for line in read_lines(export / SEALS)]
        self.records = [
            (f.content.record.content, f.content.seal_line) for f in read_spool(export / RECORDS)
        ]
        self.heads = [SignedHead.from_line(line) for line in read_lines(export / HEADS)]
        self.manifest: dict[str, Any] = json.loads((export / MANIFEST).read_bytes())

    def written(self) -> Path:
        """A new export, with a manifest that agrees with its files."""
        out = self._directory
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(self._original, out)
        lines = b"".join(line + b"\n" for line in self.seals)
        (out / SEALS).write_bytes(zstandard.compress(lines))
        frames = []
        for content, line in self.records:
            plain = content + b"\n" + (line + b"\n" if line is not None else b"")
            frames.append(zstandard.ZstdCompressor(write_checksum=True).compress(plain))
        (out / RECORDS).write_bytes(b"".join(frames))
        (out / HEADS).write_bytes(b"".join(head.to_line() + b"\n" for head in self.heads))
        return resealed_manifest(out, self.manifest, len(self.records))

    def swapped(self, index: int, seal_line: bytes) -> None:
        """Put another seal in a seal's place, in the log and beside its record."""
        content, line = self.records[index]
        self.records[index] = (content, seal_line)
        self.seals[self.seals.index(line or b"")] = seal_line

    def seal_of(self, index: int) -> Sealed:
        """A record's seal."""
        return Sealed.from_line(self.records[index][1] or b"")

    def relogged(self, key: Signer = OPERATOR) -> None:
        """Make the last head anew over the seals as they are now, signed with `key`."""
        older = CompactRange(
            self.manifest["log"]["first"],
            [bytes.fromhex(h) for h in self.manifest["log"]["subtrees"]],
        )
        leaves = b"".join(leaf_hash(Sealed.from_line(line).leaf) for line in self.seals)
        grown = GrownTree(older, leaves)
        head = replace(self.heads[-1].head, size=grown.size, root=grown.root)
        self.heads[-1] = signed(head, key, consistency_proof(grown, older.size))

    def resealed(self, index: int, change: Callable[[dict[str, Any]], None], key: Signer) -> None:
        """Change a record, and seal it and all that follow it in its chain anew with `key`."""
        validator = Sealed.from_line(self.records[index][1] or b"").seal.validator
        previous: str | None = None
        for at, (content, line) in enumerate(self.records):
            seal = Sealed.from_line(line or b"").seal
            if at < index or seal.validator != validator:
                continue
            if at == index:
                value = json.loads(content)
                change(value)
                content = canonical(value)
                previous = seal.previous
            digest = hashlib.sha256(content).hexdigest()
            made = replace(seal, record=digest, size=len(content), previous=previous).encode()
            new = sealed_by(made, key)
            self.records[at] = (content, new.to_line())
            self.seals[self.seals.index(line or b"")] = new.to_line()
            previous = new.hash


def sealed_by(content: bytes, key: Signer) -> Sealed:
    """A seal's bytes, signed."""
    return Sealed(content, key.sign(seal_message(content)))


def signed(head: Head, key: Signer, proof: Sequence[bytes] = ()) -> SignedHead:
    """A head, signed."""
    content = head.encode()
    return SignedHead(content, key.sign(signing_message(content)), tuple(proof))


def resealed_manifest(out: Path, manifest: dict[str, Any], records: int) -> Path:
    """Write the manifest that the files of `out` ask for."""
    files = {
        str(path.relative_to(out)): {"bytes": path.stat().st_size, "sha256": file_hash(path)}
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != MANIFEST
    }
    counts = {**manifest["counts"], "records": records}
    value = {**manifest, "files": files, "counts": counts}
    (out / MANIFEST).write_text(json.dumps(value))
    return out


def checked(
    *paths: Path,
    world: World | None = None,
    race: bool = False,
    trust: Trust | None = None,
    jobs: int = 1,
) -> Report:
    """Verify directories; in this process, unless there are more jobs."""
    sources: list[Source] = [RaceSource(p) if race else ExportSource(p) for p in paths]
    options = Options(
        trust=trust or Trust(),
        catalog=world.catalog if world else None,
        recompute=world is not None,
        jobs=jobs,
    )
    return asyncio.run(verify(sources, options))


def codes(report: Report) -> set[str]:
    """The codes of what was found."""
    return {finding.code.value for finding in report.findings}
