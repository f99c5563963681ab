"""Taking a submission in: pace, cooldown, gate, and then everything in one transaction.

It opens no evaluation: that is the conductor's, who sees the new version in the season.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import structlog
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.db.journal import append_within
from arena.exceptions import AdmissionError, JournalConflictError
from arena.journal import Journal
from arena.problems.following import BankFollower
from arena.season.commands import Submit
from arena.season.deciding import decide
from arena.season.following import SeasonFollower
from arena.season.state import STREAM, Season
from arena.submissions.admission import Admission, judge
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.known import KnownAnswers, KnownCopies
from arena.submissions.policy import Policy
from arena.submissions.policy_file import public_bases
from arena.submissions.process import Reader
from arena.submissions.reading import Reading
from arena.submissions.refusals import (
    BadSourceError,
    CooldownError,
    GateError,
    SubmissionsPausedError,
    TooManyRefusalsError,
    checked_name,
    knows_answers,
)
from arena.submissions.store import AgentVersion, SubmissionStore
from scoring.types import JsonObject

_log = structlog.get_logger(__name__)

TRIES = 5
"""How often a submission is decided anew when the season has gone on meanwhile."""
GATE = GateError.code
KNOWS_ANSWERS = "submission.knows_answers"
"""How a refusal is stored that the bank's problems had a part in: it costs the cooldown."""
_LOCK = 0x53_55_42_4D
"""Key of the advisory lock under which submissions are admitted, one at a time, whoever
serves them: two copies of one file that come at once must meet each other."""
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pace:
    """How much the gate reads. Beyond it a submission is refused unread."""

    refusals_an_hour: int = 20
    """Refused files of one hotkey."""
    waiting: int = 64
    """Submissions that one process has at hand at once."""
    paused: bool = False
    """Whether an operator takes none in."""


class SubmissionService:
    """Takes submissions in. One a process and event loop; `close` it at the end."""

    def __init__(
        self,
        engine: AsyncEngine,
        journal: Journal,
        *,
        policy: Policy | None = None,
        shipped: Mapping[str, Path] | None = None,
        pace: Pace | None = None,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        """`shipped`: agents by the names that the policy's public bases have. An id is made
        here, and not from the file: ties are settled by it."""
        self._engine = engine
        self._policy = policy or Policy()
        self._shipped = dict(shipped or {})
        self._pace = pace or Pace()
        self._new_id = new_id
        self._store = SubmissionStore(engine)
        self._season = SeasonFollower(journal)
        self._answers = KnownAnswers(BankFollower(journal))
        self._copies: KnownCopies | None = None
        self._admitting = asyncio.Lock()
        self._hotkeys: dict[str, asyncio.Lock] = {}
        self._at_hand = 0
        # One thread: a reader reads one file after another, also when a caller goes away.
        self._thread = ThreadPoolExecutor(1, "gate")
        self._reader = Reader()

    def close(self) -> None:
        """End the gate's process."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._reader.close()

    async def submit(
        self, hotkey: str, name: str, source: bytes, artefact: JsonObject | None, now: datetime
    ) -> AgentVersion:
        """Admit a hotkey's file under an agent's name; the same file again is the same version.

        Raises a SubmissionError for what the submitter has to mend or to wait for (BadNameError,
        BadSourceError, CooldownError, TooManyRefusalsError, GateError), SubmissionsPausedError,
        AdmissionError when the gate cannot read now, and database errors. Whatever it raises,
        nothing is stored but what the gate found.
        """
        name = checked_name(name, self._policy.max_name_chars)
        if not source:
            raise BadSourceError("the file is empty")
        if len(source) > self._policy.max_bytes:
            limit = self._policy.max_bytes
            raise BadSourceError(f"a file has at most {limit:,} bytes", too_large=True)
        if self._pace.paused:
            raise SubmissionsPausedError("submissions are paused; nothing is lost by waiting")
        async with self._turn(hotkey):
            same = await self._same(hotkey, source, artefact)
            if same is not None:
                return same
            await self._check_pace(hotkey, now)
            reading = await self._read(source)
            for attempt in range(1, TRIES + 1):
                try:
                    return await self._admit(hotkey, name, source, artefact, reading, now)
                except JournalConflictError:
                    if attempt == TRIES:
                        raise
        raise AssertionError("unreachable")

    @contextlib.asynccontextmanager
    async def _turn(self, hotkey: str) -> AsyncIterator[None]:
        """A hotkey's submissions one after another, and not too many in all."""
        if self._at_hand >= self._pace.waiting:
            raise AdmissionError("the gate has too many files at hand; try again")
        lock = self._hotkeys.setdefault(hotkey, asyncio.Lock())
        self._at_hand += 1
        try:
            async with lock:
                yield
        finally:
            self._at_hand -= 1
            if not self._at_hand:
                self._hotkeys.clear()

    async def _same(
        self, hotkey: str, source: bytes, artefact: JsonObject | None
    ) -> AgentVersion | None:
        """The version that this is already, unless its hotkey has left since."""
        async with self._engine.connect() as connection:
            found = await self._store.same(connection, hotkey, source, artefact)
        season = (await self._season.current()).season
        for version in found:
            entrant = season.entrants.get(str(version.version_id))
            if entrant is not None and not entrant.left:
                return version
        return None

    async def _check_pace(self, hotkey: str, now: datetime) -> None:
        """Before anything is read. Raises CooldownError, TooManyRefusalsError."""
        season = (await self._season.current()).season
        if (ends_at := cooldown_ends(season, hotkey)) is not None and now < ends_at:
            raise _cooldown(ends_at)
        await self._check_costly(hotkey, season, now)
        recent = await self._store.refused_since(hotkey, now - _HOUR)
        if len(recent) >= self._pace.refusals_an_hour:
            limit = self._pace.refusals_an_hour
            raise TooManyRefusalsError(
                f"{limit} files of this hotkey were refused within an hour",
                ends_at=recent[-limit] + _HOUR,
            )

    async def _check_costly(self, hotkey: str, season: Season, now: datetime) -> None:
        """Whether a refused file cost the cooldown. Raises CooldownError."""
        gap = season.rules.submission_gap
        costly = await self._store.refused_since(hotkey, now - gap, KNOWS_ANSWERS)
        if costly:
            raise _cooldown(costly[-1] + gap)

    async def _read(self, source: bytes) -> Reading:
        loop = asyncio.get_running_loop()
        read = partial(self._reader.read, source, self._policy)
        return await loop.run_in_executor(self._thread, read)

    async def _admit(
        self,
        hotkey: str,
        name: str,
        source: bytes,
        artefact: JsonObject | None,
        reading: Reading,
        now: datetime,
    ) -> AgentVersion:
        async with self._admitting, self._engine.begin() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(_LOCK)))
            # Once more: another process may have refused a file of this hotkey meanwhile, and
            # who asks all of them at once would be told an answer by each.
            await self._check_costly(hotkey, (await self._season.current()).season, now)
            found = await self._judge(connection, hotkey, name, source, reading)
            if found.admitted and found.fingerprint is not None:
                loaded = await self._season.current()
                season, after = loaded.season, loaded.entries
                # Another host's clock may be a little ahead of this one's.
                at = now if season.now is None else max(now, season.now)
                _check_cooldown(season, hotkey, at)
                version_id = self._new_id()
                events = decide(season, Submit(str(version_id), hotkey, found.sha256), at)
                await append_within(connection, STREAM, events, after=after)
                return await self._store.admit(
                    connection,
                    version_id,
                    hotkey=hotkey,
                    name=name,
                    source=source,
                    artefact=artefact,
                    fingerprint=found.fingerprint,
                    season_entry=after + len(events),
                    at=at,
                )
            # In a transaction of its own, and while the lock is held: the next one sees it.
            await self._refuse(hotkey, name, source, found, now)
        raise AssertionError("unreachable")

    async def _judge(
        self, connection: AsyncConnection, hotkey: str, name: str, source: bytes, reading: Reading
    ) -> Admission:
        if self._copies is None:
            self._copies = KnownCopies(self._store, await self._bases())
        known, bank = await self._copies.current(connection), await self._answers.current()
        found = partial(judge, name=name, policy=self._policy, known=known, bank=bank)
        return await asyncio.to_thread(found, reading, source, hotkey=hotkey)

    async def _bases(self) -> list[Fingerprint]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, lambda: list(public_bases(self._policy, self._shipped, self._reader))
        )

    async def _refuse(
        self, hotkey: str, name: str, source: bytes, found: Admission, now: datetime
    ) -> None:
        """Store what was found, and raise what may be told of it."""
        costs = knows_answers(found.violations)
        code = KNOWS_ANSWERS if costs else GATE
        await self._store.refuse(hotkey, name, source, code, found.violations, now)
        _log.info("submission refused", hotkey=hotkey, sha256=found.sha256, code=code)
        gap = (await self._season.current()).season.rules.submission_gap
        raise GateError(found.violations, cooldown_until=now + gap if costs else None)


def cooldown_ends(season: Season, hotkey: str) -> datetime | None:
    """When a hotkey may submit again after its last admitted file; None when it has none."""
    last = season.last_submission.get(hotkey)
    return None if last is None else last + season.rules.submission_gap


def _check_cooldown(season: Season, hotkey: str, at: datetime) -> None:
    """As the season decides it, with the time when the wait is over."""
    ends_at = cooldown_ends(season, hotkey)
    if ends_at is not None and at < ends_at:
        raise _cooldown(ends_at)


def _cooldown(ends_at: datetime) -> CooldownError:
    return CooldownError(
        f"this hotkey has submitted of late; the wait ends at {ends_at:%F %T} UTC", ends_at=ends_at
    )
