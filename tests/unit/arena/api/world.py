"""An arena to test against: an app over a real database, real keys, a metagraph of our own."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid5

import httpx
import uvicorn
from bittensor.keyfiles import Keypair
from bittensor_auth import generate_auth_headers
from cryptography.fernet import Fernet
from fastapi import FastAPI
from sqlalchemy import text

from arena.api.app import create_app
from arena.api.inputs import InputStore, open_evaluation
from arena.api.links import Links
from arena.api.metagraph import MetagraphCache
from arena.api.objects import open_store
from arena.api.services import Services
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.db.journal import PostgresJournal
from arena.exceptions import ChainUnavailableError
from arena.records.store import RecordStore
from arena.runs.frames import encode_frame
from arena.runs.ledger import Head, seal_after
from arena.runs.record import AgentRef, EncodedRecord, RunRecord
from arena.runs.seal import SealedRecord
from arena.runs.signing import KeypairSigner
from arena.secrets import SecretBox
from arena.work.queue import WorkQueue
from arena.work.types import Evaluation, EvaluationKind
from judge.verdict import Gate
from scoring.types import Problem
from tests.unit.arena import builders

NAMESPACE = UUID("0b7d6c3e-8a57-5a0e-8d6e-3a1b5a1c2d3e")
SOURCE = b"def agent_main(problem):\n    return []\n"
TAO = 10**9
GATE = Gate.INFERENCE
"""What a trace without any call is worth: the judge may say no more of it."""


@dataclass(frozen=True)
class Peer:
    uid: int
    hotkey: str
    permit: bool
    stake: int


@dataclass
class Chain:
    """A metagraph that can be taken down."""

    peers: list[Peer] = field(default_factory=list)
    netuid: int = 15
    block: int = 1_000
    tempo: int = 360
    down: bool = False

    async def read(self) -> Chain:
        if self.down:
            raise ChainUnavailableError("down")
        return replace(self, peers=list(self.peers))


class Clock:
    """The real time, since clients sign with it, and as much later as a test says."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


class Validator:
    """A hotkey that seals records, one chain."""

    def __init__(self, uri: str) -> None:
        self.pair = Keypair.create_from_uri(uri)
        self.signer = KeypairSigner(self.pair)
        self.head = Head()

    @property
    def hotkey(self) -> str:
        return str(self.pair.ss58_address)

    def seal(self, record: EncodedRecord, *, at: datetime | None = None) -> SealedRecord:
        now = at or datetime.now(UTC)
        sealed = seal_after(self.head, record, self.signer, now=now, block=None)
        self.head = Head.of(sealed.sealed)
        return sealed

    def headers(self) -> dict[str, str]:
        return dict(generate_auth_headers(self.pair))


def frames(records: Sequence[SealedRecord]) -> bytes:
    return b"".join(encode_frame(one.record, one.sealed) for one in records)


def problem(number: int) -> Problem:
    made = builders.problem(number, f"find {number}")
    return replace(made, problem_id=str(uuid5(NAMESPACE, f"problem {number}")), pool="bank:open")


class World:
    """One arena: any number of apps over one database."""

    def __init__(self, database: Database, directory: Path, settings: ApiSettings) -> None:
        self.clock = Clock()
        self.chain = Chain()
        self.database = database
        self.directory = directory
        self.settings = settings
        self.queue = WorkQueue(database.engine)
        self.inputs = InputStore(database.engine)
        self.secrets = SecretBox([Fernet.generate_key()])
        self.validators = [Validator("//Alice"), Validator("//Bob")]
        self.miner = Validator("//Charlie")
        self.stranger = Validator("//Dave")
        members = [*self.validators, self.miner]
        self.chain.peers = [
            Peer(uid, one.hotkey, permit=one is not self.miner, stake=1_000 * TAO)
            for uid, one in enumerate(members)
        ]

    def services(self) -> Services:
        links = Links(b"k" * 32)
        return Services(
            settings=self.settings,
            engine=self.database.engine,
            queue=self.queue,
            records=RecordStore(self.database.engine),
            journal=PostgresJournal(self.database.engine),
            objects=open_store(self.settings, links),
            metagraph=MetagraphCache(
                self.chain.read,
                self.clock,
                refresh_s=self.settings.metagraph_refresh,
                max_age_s=self.settings.metagraph_max_age,
            ),
            links=links,
            clock=self.clock,
            secrets=self.secrets,
        )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        """A client of an app in this process."""
        app = create_app(self.services())
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://arena.test"
            ) as client,
        ):
            yield client

    async def open(
        self,
        problems: int = 2,
        needed: int = 2,
        kind: EvaluationKind = EvaluationKind.QUALIFYING,
        number: int = 1,
    ) -> Evaluation:
        """An evaluation of the `number`-th agent version."""
        return await open_evaluation(
            self.queue,
            self.inputs,
            uuid5(NAMESPACE, f"version {number}"),
            kind,
            "race-1" if kind is EvaluationKind.RACE else None,
            name="agent",
            source=SOURCE,
            problems=[problem(i) for i in range(1, problems + 1)],
            suite=7,
            needed=needed,
            at=self.clock(),
        )

    def record(
        self, evaluation: Evaluation, number: int, who: str = "alice", *, gate: Gate | None = GATE
    ) -> RunRecord:
        """A run's record as an honest validator makes it."""
        made = builders.record(
            problem(number),
            race_id=str(evaluation.evaluation_id),
            run_id=f"{who}-{evaluation.evaluation_id.hex[:8]}-{number}",
            gate=gate,
        )
        version = str(evaluation.version)
        agent = AgentRef(version, "agent", hashlib.sha256(SOURCE).hexdigest(), version)
        return replace(made, agent=agent, phase=evaluation.kind.value)

    async def rows(self, table: str) -> int:
        async with self.database.engine.connect() as connection:
            return int(await connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0)

    async def stored(self) -> tuple[int, ...]:
        """How much is stored of what a refused request must not add to."""
        names = ("records", "seals", "runs", "verdicts", "counted_records", "work_history")
        return tuple([await self.rows(name) for name in names])


class _Server(uvicorn.Server):
    """Says when it answers."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, access_log=False, lifespan="on"))
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[str]:
    """The app behind a real server on a free port of loopback; its address."""
    server = _Server(app)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        task = asyncio.create_task(server.serve(sockets=[listening]))
        up = asyncio.create_task(server.up.wait())
        await asyncio.wait((task, up), return_when=asyncio.FIRST_COMPLETED)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            up.cancel()
            server.should_exit = True
            await task
