"""Pass one: what becomes of a record, from its bytes to a candidate or a reason.

Runs in processes of its own, record by record: nothing here looks at two records at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import cast

import orjson
import zstandard

from arena.exceptions import SealError
from arena.runs.record import RECORD_SCHEMA
from arena.runs.seal import Seal, Sealed, signing_message
from arena.runs.signing import verify_signature
from arena.season.release import Release
from corpus_export.features import features
from corpus_export.gates import coefficient_gate, refused
from corpus_export.normalise import messages_of, normalise
from corpus_export.rows import AXES, SPLITS, Place, Verdict, row_of
from corpus_export.sources import RawRecord
from corpus_export.tokens import TokenCounter, open_tokens
from corpus_export.types import Features, Reason, Reject, Trajectory
from corpus_export.workfile import Found
from sandbox.catalog import Catalog, open_catalog
from scoring.types import Bucket, Json, JsonObject

DETAIL_CHARS = 300
_UNREADABLE = (
    *(ValueError, LookupError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError),
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker needs to know; the same for all records."""

    catalogs: tuple[Path, ...]
    tokenizer: Path | None
    places: Mapping[str, Place]
    """By problem id: every problem at hand that the partition knows."""
    release: Release
    day: date | None
    min_coefficient: float
    max_tokens: int
    public: bool


@dataclass(frozen=True, slots=True)
class Packed:
    """A candidate's row on its way from pass one to pass two. `foreign` are the ids of calls
    whose result is not what the wire answered: the agent's own text."""

    row: JsonObject
    foreign: tuple[str, ...]

    def pack(self) -> bytes:
        """As bytes."""
        return zstandard.compress(orjson.dumps([self.row, self.foreign]), 3)

    @classmethod
    def unpack(cls, packed: bytes) -> Packed:
        """Read what `pack` made."""
        row, foreign = orjson.loads(zstandard.decompress(packed))
        return cls(row, tuple(foreign))


class Examiner:
    """Examines records one after another."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._catalogs: dict[str, Catalog] = {}
        for path in setup.catalogs:
            catalog = open_catalog(path)
            self._catalogs[catalog.content_hash] = catalog
        self.tokens: TokenCounter = open_tokens(setup.tokenizer)

    def examine(self, raw: RawRecord) -> tuple[Found, bytes | None] | None:
        """What came of a record, with the packed row of a candidate. None when its run
        finished on another day."""
        digest = hashlib.sha256(raw.content).hexdigest()
        try:
            value = orjson.loads(raw.content)
        except orjson.JSONDecodeError as error:
            return Found(digest, reason=Reason.UNREADABLE, detail=_bounded(str(error))), None
        if not isinstance(value, dict) or value.get("schema") != RECORD_SCHEMA:
            schema = value.get("schema") if isinstance(value, dict) else None
            detail = _bounded(f"schema {schema!r}, expected {RECORD_SCHEMA}")
            return Found(digest, reason=Reason.UNKNOWN_SCHEMA, detail=detail), None
        try:
            if self._other_day(value):
                return None
            return _Examination(self, self._setup, value, digest, raw).run()
        except _UNREADABLE as error:
            detail = _bounded(f"{type(error).__name__}: {error}")
            found = Found(digest, _id_of(value), reason=Reason.UNREADABLE, detail=detail)
            return found, None

    def catalog(self, content_hash: str) -> Catalog | None:
        """The catalogue with this content, when it is at hand."""
        return self._catalogs.get(content_hash)

    def _other_day(self, record: JsonObject) -> bool:
        if self._setup.day is None:
            return False
        finished = cast("JsonObject", record["timing"])["finished_at"]
        at = datetime.fromisoformat(cast("str", finished))
        return (at - (at.utcoffset() or timedelta())).date() != self._setup.day


class _Examination:
    """One record on its way through the stages; what is known so far is in `_found`."""

    def __init__(
        self, examiner: Examiner, setup: Setup, record: JsonObject, digest: str, raw: RawRecord
    ) -> None:
        self._examiner = examiner
        self._setup = setup
        self._record = record
        self._raw = raw
        self._verdict = raw.verdict or _own_verdict(record)
        self._seal: Seal | None = None
        self._seal_hash: str | None = None
        problem = cast("JsonObject", record["problem"])
        conditions = cast("JsonObject", record["conditions"])
        axis = cast("JsonObject | None", record["axis"])
        self._place = setup.places.get(_text(problem["problem_id"]))
        self._found = Found(
            digest,
            run_id=_text(record["run_id"]),
            problem_id=_text(problem["problem_id"]),
            bucket=Bucket(_text(problem["bucket"])).value,
            cluster=self._place.cluster if self._place else None,
            side=self._place.side.value if self._place else None,
            axis=_axis(axis["axis"]) if axis else None,
            agent=_text(cast("JsonObject", record["agent"])["name"]),
            coefficient=self._verdict.coefficient if self._verdict else None,
            quality=self._verdict.quality if self._verdict else None,
            tool_calls=_tool_calls(record),
            scoring_version=_text(conditions["scoring_version"]),
            catalog_hash=_text(conditions["catalog_hash"]),
            later_verdict=raw.verdict.record_hash if raw.verdict else None,
        )

    def run(self) -> tuple[Found, bytes | None]:
        """Through the stages, in order, up to the first that refuses."""
        reject = self._sealed()
        if self._setup.public and not self._released:
            return self._withheld(), None
        reject = reject or self._usable()
        if reject is not None:
            return self._refused(reject)
        assert self._place is not None
        catalog = self._examiner.catalog(cast("str", self._found.catalog_hash))
        assert catalog is not None
        trajectory = normalise(self._record, self._place.query, catalog=catalog)
        if isinstance(trajectory, Reject):
            return self._refused(trajectory)
        messages = messages_of(trajectory)
        found = features(trajectory, self._examiner.tokens)
        self._found = replace(self._found, features=found)
        reject = self._worth() or refused(trajectory, found, catalog, self._setup.max_tokens)
        if reject is not None:
            return self._refused(reject)
        return self._found, self._packed(trajectory, messages, found)

    def _sealed(self) -> Reject | None:
        """Whether the seal is this record's, and its signature its validator's."""
        if self._raw.seal is None:
            return None
        try:
            sealed = self._raw.seal
            sealed = Sealed.from_line(sealed) if isinstance(sealed, bytes) else sealed
            self._seal, self._seal_hash = sealed.seal, sealed.hash
        except SealError as error:
            return Reject(Reason.BAD_SEAL, error.message)
        self._found = replace(
            self._found, validator=self._seal.validator, sequence=self._seal.sequence
        )
        if self._seal.record != self._found.record_hash:
            return Reject(Reason.BAD_SEAL, "it seals another record")
        message = signing_message(sealed.content)
        if not verify_signature(self._seal.validator, message, sealed.signature):
            return Reject(Reason.BAD_SEAL, "the signature is not its validator's")
        return None

    def _usable(self) -> Reject | None:
        if not self._record["closed"]:
            failure = cast("dict[str, str] | None", self._record["failure"])
            return Reject(Reason.OPEN, failure["code"] if failure else "")
        if self._place is None:
            return Reject(Reason.NO_PROBLEM, str(self._found.problem_id))
        if self._examiner.catalog(str(self._found.catalog_hash)) is None:
            return Reject(Reason.OTHER_CATALOGUE, str(self._found.catalog_hash))
        if self._place.side not in SPLITS:
            return Reject(Reason.NEVER_TOUCH)
        return None

    def _withheld(self) -> Found:
        """All that is public of a record that is not released: its hash, and whose chain it
        is in. Whatever else is wrong with it is not for everybody to know either."""
        known = self._found
        return Found(
            known.record_hash,
            validator=known.validator,
            sequence=known.sequence,
            reason=Reason.NOT_RELEASED,
        )

    @property
    def _released(self) -> bool:
        source = cast("dict[str, str]", self._record["agent"])["source_hash"]
        return self._setup.release(str(self._found.problem_id), source)

    def _worth(self) -> Reject | None:
        unjudged = cast("JsonObject | None", self._record.get("unjudged"))
        why = cast("dict[str, str]", unjudged["unjudged"])["code"] if unjudged else ""
        coefficient = self._verdict.coefficient if self._verdict else None
        return coefficient_gate(coefficient, self._setup.min_coefficient, why)

    def _packed(self, trajectory: Trajectory, messages: list[JsonObject], found: Features) -> bytes:
        assert self._place is not None
        assert self._verdict is not None
        row = row_of(
            self._record,
            self._found.record_hash,
            messages,
            dialect=trajectory.dialect,
            rewritten=trajectory.rewritten,
            features=found,
            place=self._place,
            released=self._released,
            verdict=self._verdict,
            seal=self._seal,
            seal_hash=self._seal_hash,
            commit=self._raw.commit,
        )
        foreign = tuple(
            result.call_id
            for turn in trajectory.turns
            for result in turn.results
            if result.mismatch and not result.abridged
        )
        return Packed(row, foreign).pack()

    def _refused(self, reject: Reject) -> tuple[Found, None]:
        return replace(self._found, reason=reject.reason, detail=_bounded(reject.detail)), None


def _own_verdict(record: JsonObject) -> Verdict | None:
    verdict = cast("JsonObject | None", record.get("verdict"))
    if verdict is None:
        return None
    return Verdict(
        quality=float(cast("float", verdict["quality"])),
        gate=cast("str", verdict["gate"]),
        coefficient=float(cast("float", record["coefficient"])),
        final_score=float(cast("float", record["final_score"])),
    )


def _tool_calls(record: JsonObject) -> int:
    events = cast("list[JsonObject]", cast("JsonObject", record["trace"])["events"])
    return sum(event["kind"] == "tool" for event in events)


def _axis(value: Json) -> str:
    """Raises ValueError for one that has no file: its rows would be written nowhere."""
    if value not in AXES:
        raise ValueError(f"{value!r:.80} is no axis")
    return _text(value)


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _id_of(record: JsonObject) -> str | None:
    run_id = record.get("run_id")
    return run_id if isinstance(run_id, str) else None


def _bounded(text: str) -> str:
    return text[:DETAIL_CHARS].replace("\0", "�")
