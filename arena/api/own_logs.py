"""How an agent's runs went, for its owner: read from the records that count.

A record holds whatever an agent wrote, and a judge quotes the trace: either may be the text of
a problem that others are still raced on. So what is free text goes out only when the problem's
text is no secret, and everything else through a set of known words and bounded numbers.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import UUID

import zstandard
from sqlalchemy import Select, and_, func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.miner_log_models import CitedSpan, OwnLog, ToldError
from arena.api.public_views import Views
from arena.db import schema
from arena.runs.record import LOG_TAIL_CHARS, EncodedRecord
from arena.season.release import own_text_withheld
from arena.work.types import EvaluationKind
from judge.verdict import Gate
from scoring.outcome import Axes, Reason
from scoring.types import Json, JsonObject

MAX_MESSAGE = 2_000
"""Characters of one message that are told."""
MAX_NOTES = 20
MAX_SPANS = 20
MAX_QUOTE = 500
_CODE = re.compile(r"[a-z][a-z0-9_.]{0,79}")
_AXES = tuple(field.name for field in fields(Axes))
_NAME = 100

_counted, _runs, _verdicts = schema.counted_records, schema.runs, schema.verdicts


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records: of these evaluations, of one problem or of one turn where it is given."""

    evaluations: Sequence[UUID]
    problem: UUID | None = None
    run: UUID | None = None


@dataclass(frozen=True, slots=True)
class CountedRecord:
    """A record that counts, and the record of its verdict where that came later."""

    evaluation_id: UUID
    eval_run_id: UUID
    phase: str
    validator: str
    problem_id: str
    bucket: str
    record_hash: bytes
    verdict_hash: bytes | None


async def count_logs(engine: AsyncEngine, wanted: Wanted) -> int:
    """How many there are."""
    if not wanted.evaluations:
        return 0
    query = select(func.count()).select_from(_query(wanted).subquery())
    async with engine.connect() as connection:
        return int(await connection.scalar(query) or 0)


async def own_logs(
    engine: AsyncEngine,
    views: Views,
    wanted: Wanted,
    *,
    limit: int,
    offset: int = 0,
    tail: int = LOG_TAIL_CHARS,
) -> AsyncIterator[OwnLog]:
    """The logs of evaluations, which the caller knows to be over, in the order of their problems.

    `tail` is how many characters of each log's end are told. One record is read at a time.
    """
    if not wanted.evaluations:
        return
    table = schema.evaluations.c
    ordered = _query(wanted).order_by(
        table.opened_at, table.evaluation_id, schema.race_problems.c.position, _counted.c.validator
    )
    async with engine.connect() as connection:
        rows = (await connection.execute(ordered.limit(limit).offset(offset))).all()
    for row in rows:
        one = CountedRecord(*row)
        # Given out afterwards: who reads slowly keeps nobody waiting.
        async with views.reading:
            told = await _told(engine, views, one, tail)
        yield told


async def _told(engine: AsyncEngine, views: Views, one: CountedRecord, tail: int) -> OwnLog:
    content = await _content(engine, one.record_hash)
    later = await _content(engine, one.verdict_hash) if one.verdict_hash else None
    # Asked for each: a bundle may be long under way.
    bank, season = await views.bank(), await views.season()
    withheld = own_text_withheld(bank, season, one.problem_id)
    return await asyncio.to_thread(_read, one, content, later, withheld, tail)


def _query(wanted: Wanted) -> Select[Any]:
    drawn, table = schema.race_problems, schema.evaluations
    query = (
        select(
            _counted.c.evaluation_id,
            _counted.c.run_id,
            table.c.kind,
            _counted.c.validator,
            _counted.c.problem_id,
            drawn.c.bucket,
            _counted.c.record_hash,
            _verdicts.c.record_hash.label("verdict_hash"),
        )
        .join(table, table.c.evaluation_id == _counted.c.evaluation_id)
        .join(_runs, _runs.c.record_hash == _counted.c.record_hash)
        .join(
            drawn,
            and_(drawn.c.race_id == _runs.c.race_id, drawn.c.problem_id == _counted.c.problem_id),
        )
        .outerjoin(_verdicts, and_(_verdicts.c.run_id == _runs.c.run_id, _verdicts.c.later))
        .where(_counted.c.evaluation_id.in_(list(wanted.evaluations)))
    )
    if wanted.problem is not None:
        query = query.where(_counted.c.problem_id == str(wanted.problem))
    if wanted.run is not None:
        query = query.where(_counted.c.run_id == wanted.run)
    return query


async def _content(engine: AsyncEngine, record_hash: bytes) -> bytes:
    table = schema.records.c
    async with engine.connect() as connection:
        query = select(table.content).where(table.record_hash == record_hash)
        return bytes(await connection.scalar(query) or b"")


def _read(
    one: CountedRecord, content: bytes, later: bytes | None, withheld: str | None, tail: int
) -> OwnLog:
    record = EncodedRecord(zstandard.decompress(content)).value
    judged = record if later is None else EncodedRecord(zstandard.decompress(later)).value
    return own_log(one, record, judged, withheld, tail)


def own_log(
    one: CountedRecord, record: JsonObject, judged: JsonObject, withheld: str | None, tail: int
) -> OwnLog:
    """What the owner is told of a record; `judged` is the one with the verdict."""
    outcome, verdict = _object(record.get("outcome")), _object(judged.get("verdict"))
    unjudged = _object(_object(record.get("unjudged")).get("unjudged"))
    shown = withheld is None
    told = OwnLog(
        evaluation_id=one.evaluation_id,
        eval_run_id=one.eval_run_id,
        phase=EvaluationKind(one.phase).value,
        problem_id=UUID(one.problem_id),
        category=one.bucket,
        validator_hotkey=one.validator,
        withheld=withheld,
        success=outcome.get("success") is True,
        outcome=_one_of(outcome.get("reason"), [reason.value for reason in Reason]),
        axes=_axes(_object(outcome.get("axes"))),
        axis=_one_of(_object(record.get("axis")).get("axis"), "AB"),
        score=_share(judged.get("final_score")),
        reasoning_quality=_share(verdict.get("quality")),
        gate=_one_of(verdict.get("gate"), [gate.value for gate in Gate]),
        capped_from=_share(verdict.get("capped_from")),
        unjudged=None if verdict else _error(unjudged, shown=shown),
        failure=_error(_object(record.get("failure")), shown=shown),
    )
    if not shown:
        return told
    notes = [_error(_object(note), shown=True) for note in _list(record.get("notes"))[:MAX_NOTES]]
    log = record.get("log_tail")
    return told.model_copy(
        update={
            "notes": [note for note in notes if note is not None],
            "judges": [_clean(str(name), _NAME) for name in _list(verdict.get("judges"))[:10]],
            "evidence": [_span(_object(s)) for s in _list(verdict.get("evidence"))[:MAX_SPANS]],
            "log_tail": _clean(log[len(log) - min(tail, len(log)) :], LOG_TAIL_CHARS)
            if isinstance(log, str)
            else None,
        }
    )


def _error(value: JsonObject, *, shown: bool) -> ToldError | None:
    code = value.get("code")
    if code is None:
        return None
    known = isinstance(code, str) and _CODE.fullmatch(code)
    message = _clean(str(value.get("message", "")), MAX_MESSAGE) if shown else None
    return ToldError(code=str(code) if known else "unknown", message=message)


def _span(value: JsonObject) -> CitedSpan:
    event, start, end = (value.get(name) for name in ("event", "start", "end"))
    return CitedSpan(
        event=event if type(event) is int else -1,
        start=start if type(start) is int else 0,
        end=end if type(end) is int else 0,
        field=_clean(str(value.get("field", "")), _NAME),
        quote=_clean(str(value.get("quote", "")), MAX_QUOTE),
    )


def _axes(value: JsonObject) -> dict[str, float]:
    """By name; only axes that there are, and only shares."""
    found = {name: _share(value.get(name)) for name in _AXES}
    return {name: share for name, share in found.items() if share is not None}


def _share(value: Json) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None


def _one_of(value: Json, words: Sequence[str]) -> str | None:
    return value if isinstance(value, str) and value in list(words) else None


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _clean(text: str, limit: int) -> str:
    """Bounded, and without the lone surrogates that no answer can be encoded with."""
    return text[:limit].encode("utf-8", "replace").decode()
