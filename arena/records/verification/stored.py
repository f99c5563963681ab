"""Records, seals and the log of a database, as verification reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import zstandard
from sqlalchemy import exists, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.chain import Commitment
from arena.db import schema
from arena.records.log import TransparencyLog
from arena.records.merkle import CompactRange
from arena.records.proofs import InclusionProof
from arena.records.verification.findings import Check, Code, Report
from arena.records.verification.heads import PlacedHead
from arena.records.verification.materials import Materials
from arena.records.verification.sources import BATCH_BYTES, BATCH_LEAVES, BATCH_RECORDS
from arena.records.verification.work import LeafLine, RecordLine
from arena.runs.seal import Sealed

_YIELD = 256
MAX_RECORD_BYTES = 256 << 20


class DatabaseSource:
    """A database of the arena's schema: everything is there from the first seal on."""

    name = "database"
    has_log = True
    may_be_unlogged = True
    whole = True
    ordered = False

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._log = TransparencyLog(engine)
        self._hashes = bytearray()

    def check_files(self, report: Report) -> None:
        """There are none."""

    async def materials(self) -> Materials:
        """Its problems and its agents' files."""
        async with self._engine.connect() as connection:
            problems = await connection.execute(select(schema.problem_contents.c.content))
            contents = [zstandard.decompress(content) for (content,) in problems]
            agents = await connection.execute(
                select(schema.agent_sources.c.source_hash, schema.agent_sources.c.source)
            )
            sources = {row.source_hash.hex(): row.source for row in agents}
        return Materials(sources=sources).with_problems(contents)

    async def heads(self, report: Report) -> list[PlacedHead]:
        """All heads; the columns beside their bytes must say the same."""
        found = []
        for stored in await self._log.heads():
            head = stored.signed.head
            place = f"head of {head.day}"
            if (stored.subtrees.size, stored.subtrees.root) != (head.size, head.root):
                detail = "the stored subtrees do not lead to its root"
                report.found(Code.LOG_ROOT, Check.LOG, place, detail)
            found.append(PlacedHead(place, stored.signed))
        return found

    async def commitments(self, report: Report) -> list[tuple[str, Commitment]]:
        """What was stored when heads were put on chain."""
        stored = await self._log.commitments()
        return [(f"commitment of {one.day}", one.commitment) for one in stored]

    async def anchors(self, report: Report) -> list[tuple[str, InclusionProof]]:
        """None: the chains are here from their beginning."""
        return []

    def start(self, report: Report) -> CompactRange:
        """The log from its first leaf."""
        return CompactRange()

    async def leaves(self, report: Report) -> AsyncIterator[list[LeafLine]]:
        """All leaves; a number that is missing is told."""
        batch: list[LeafLine] = []
        expected = 0
        async with self._log.seals(0, 2**62) as found:
            async for number, sealed in found:
                if number != expected:
                    detail = f"leaf {expected} is missing; the next one is {number}"
                    place = f"leaf {expected}"
                    report.found(Code.LOG_LEAF_MISSING, Check.LOG, place, detail)
                expected = number + 1
                batch.append(LeafLine(f"leaf {number}", _line(sealed)))
                if len(batch) >= BATCH_LEAVES:
                    yield batch
                    batch = []
        if batch:
            yield batch

    async def records(self, report: Report) -> AsyncIterator[list[RecordLine]]:
        """All records with their seals, chain by chain."""
        await self._count_unsealed(report)
        seals, records = schema.seals.c, schema.records.c
        query = (
            select(
                seals.validator,
                seals.sequence,
                seals.content.label("seal"),
                seals.signature,
                records.record_hash,
                records.content,
            )
            .join(schema.records, records.record_hash == seals.record_hash)
            .order_by(seals.validator, seals.sequence)
        )
        batch: list[RecordLine] = []
        size = 0
        async with self._engine.connect() as connection:
            rows = await connection.stream(query, execution_options={"yield_per": _YIELD})
            async for row in rows:
                place = f"seal {row.sequence} of {row.validator}"
                self._hashes += row.record_hash
                number = len(self._hashes) // 32
                try:
                    content = zstandard.decompress(row.content, max_output_size=MAX_RECORD_BYTES)
                except zstandard.ZstdError as error:
                    detail = f"its stored bytes are damaged: {error}"
                    report.found(Code.FILE_DAMAGED, Check.FILES, place, detail)
                    continue
                line = _line(Sealed(row.seal, row.signature))
                batch.append(RecordLine(place, content, line, number))
                size += len(content)
                if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                    yield batch
                    batch, size = [], 0
        if batch:
            yield batch

    async def read(self, ref: int, record_hash: str) -> bytes | None:
        """A record by its hash, or by its number among those that were given."""
        digest = bytes.fromhex(record_hash) or bytes(self._hashes[32 * (ref - 1) : 32 * ref])
        query = select(schema.records.c.content).where(schema.records.c.record_hash == digest)
        async with self._engine.connect() as connection:
            content = await connection.scalar(query)
        return None if content is None else zstandard.decompress(content)

    async def _count_unsealed(self, report: Report) -> None:
        sealed = exists().where(schema.seals.c.record_hash == schema.records.c.record_hash)
        query = select(func.count()).select_from(schema.records).where(~sealed)
        async with self._engine.connect() as connection:
            count = int(await connection.scalar(query) or 0)
        if count:
            reason = "stored before records were sealed"
            report.uncheckable(Check.SIGNATURE, reason, count)


def _line(sealed: Sealed) -> bytes:
    """As files hold it; what cannot be one line of JSON is left for the reader to refuse."""
    try:
        return sealed.to_line()
    except ValueError:
        return sealed.content
