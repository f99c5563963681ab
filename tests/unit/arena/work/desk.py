"""What tests of the queue share: a clock, and evaluations, records and endings in few words."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from arena.db import schema
from arena.db.guard import WRITER
from arena.exceptions import Fault
from arena.work.policy import WorkPolicy
from arena.work.queue import WorkQueue
from arena.work.types import Ended, Evaluation, EvaluationKind, Lease, RunState
from arena.work.views import Completion
from scoring.exceptions import ErrorInfo

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LEASE = timedelta(seconds=120)
POLICY = WorkPolicy(tries=3, first_wait=timedelta(minutes=1), longest_wait=timedelta(minutes=3))
SUCCESS = Ended(RunState.SUCCESS)
A, B, C = "val-a", "val-b", "val-c"


def failed(fault: Fault = Fault.VALIDATOR, state: RunState = RunState.FAILED) -> Ended:
    return Ended(state, ErrorInfo("model.unreachable", fault, "the provider does not answer"))


def application(url: str) -> AsyncEngine:
    """An engine with the application's rights."""
    return create_async_engine(url, connect_args={"server_settings": {"role": WRITER}})


class Desk:
    """A queue and the time."""

    def __init__(
        self, engine: AsyncEngine, policy: WorkPolicy = POLICY, *, salt: str | None = None
    ) -> None:
        self.engine = engine
        self.queue = WorkQueue(engine, policy)
        self.now = NOON
        self._salt = salt or str(uuid4())
        self.first, self.second = self.hash("first"), self.hash("second")

    def hash(self, *parts: object) -> str:
        """The hash of a record, which no desk has but those of the same salt."""
        return hashlib.sha256(repr((self._salt, *parts)).encode()).hexdigest()

    async def clear(self) -> None:
        """Leave nothing to claim."""
        for view in await self.queue.open_evaluations():
            await self.queue.cancel(view.evaluation.version, "the test is over", self.now)

    def later(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now

    async def open(
        self,
        *,
        needed: int = 1,
        problems: int = 2,
        race: str | None = None,
        version: UUID | None = None,
    ) -> Evaluation:
        kind = EvaluationKind.RACE if race else EvaluationKind.QUALIFYING
        names = [f"p{i}" for i in range(problems)]
        which = version or uuid4()
        return await self.queue.open_evaluation(which, kind, race, names, needed, self.now)

    async def claim(
        self, validator: str, *, capacity: int = 9, working: Collection[UUID] | None = None
    ) -> Lease | None:
        return await self.queue.claim(
            validator, capacity=capacity, now=self.now, lease=LEASE, working=working
        )

    async def claimed(self, validator: str) -> Lease:
        lease = await self.claim(validator)
        assert lease is not None
        return lease

    async def store(self, *hashes: str) -> None:
        """Records of these hashes, as the record store would have them."""
        rows = [
            {"record_hash": bytes.fromhex(h), "schema_version": 1, "size": 1, "content": b""}
            for h in hashes
        ]
        async with self.engine.begin() as connection:
            await connection.execute(insert(schema.records).on_conflict_do_nothing(), rows)

    async def count(self, lease: Lease, problem: str, record: str | None = None) -> bool:
        """Store a record and let it count."""
        digest = record or self.hash(lease.evaluation.evaluation_id, lease.validator, problem)
        await self.store(digest)
        return await self.queue.count_record(
            lease.run_id, lease.validator, problem, digest, self.now
        )

    async def count_all(self, lease: Lease) -> None:
        for problem in lease.evaluation.problems:
            await self.count(lease, problem)

    async def end(self, lease: Lease, ended: Ended) -> Completion:
        return await self.queue.complete(lease.run_id, lease.validator, ended, self.now)

    async def succeed(self, lease: Lease) -> Completion:
        await self.count_all(lease)
        return await self.end(lease, SUCCESS)
