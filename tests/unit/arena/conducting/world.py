"""An arena whose calendar is looked at by hand: a clock, a metagraph, validators that work.

The database, the journals, the queue, seals and records are the real ones. What is made up is
the chain's metagraph, what agents score, and problems that resemble one another nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from statistics import fmean
from typing import Any
from uuid import UUID, uuid5

from bittensor.keyfiles import Keypair
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.chain import Block, Commitment
from arena.conducting.beacons import Beacons
from arena.conducting.conductor import Conductor
from arena.conducting.parts import ArenaChain, ExportState, Parts
from arena.conducting.settings import ConductorSettings
from arena.conducting.work import Done
from arena.db.journal import PostgresJournal
from arena.exceptions import ChainUnavailableError
from arena.journal import Event
from arena.problems.bank import Bank
from arena.problems.bank_store import LoadedBank
from arena.problems.intake import Intake
from arena.problems.pools import Pool
from arena.problems.rotation import RotationRule
from arena.records.store import RecordStore
from arena.runs.ledger import Head, seal_after
from arena.runs.record import AgentRef, EncodedRecord, RunRecord
from arena.runs.seal import BlockRef, SealedRecord
from arena.runs.signing import KeypairSigner
from arena.season.beacon import BeaconValue, Source, Ticket
from arena.season.commands import Submit
from arena.season.rules import SeasonRules
from arena.season.state import Season
from arena.season.store import command, load_season
from arena.secrets import SecretBox
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.store import SubmissionStore
from arena.work.policy import WorkPolicy
from arena.work.queue import WorkQueue
from arena.work.types import Ended, EvaluationKind, Lease, RunState
from judge.verdict import Gate
from scoring.coefficient import coefficient
from scoring.exceptions import ErrorInfo, Fault
from scoring.types import Bucket
from tests.unit.arena import builders
from tests.unit.arena.problems import banks

NAMESPACE = UUID("9f1b35a6-1f5e-5a57-9b39-0a6a1c5b7d21")
MORNING = datetime(2026, 1, 5, 8, tzinfo=UTC)
"""A Monday, four hours before the first closing."""
TAO = 10**9
LEASE = timedelta(minutes=10)
GATE = Gate.PASSED
KEY = b"the secret key of this arena's bank"
RULES = SeasonRules(
    closing="12:00",
    zone="UTC",
    quota=dict.fromkeys(Bucket, 1),
    validators=2,
    quorum=1,
    beacon=Source.STANDIN,
)
ROTATION = RotationRule(every=timedelta(hours=20), opens=1, retires=1, held_out_min=1, open_min=1)
SETTINGS = ConductorSettings(qualifying_problems=3, stuck_minutes=30, log_delay_minutes=10)
POLICY = WorkPolicy(tries=2, first_wait=timedelta(0), longest_wait=timedelta(0))


@dataclass(frozen=True)
class Peer:
    uid: int
    hotkey: str
    permit: bool = True
    stake: int = 1_000 * TAO


@dataclass
class Chain:
    """A metagraph and commitments, that can be taken down. A block every 12 seconds."""

    world: World
    netuid: int = 15
    tempo: int = 360
    peers: list[Peer] = field(default_factory=list)
    committed_data: dict[str, Commitment] = field(default_factory=dict)
    down: bool = False
    wrote: Callable[[], None] = lambda: None
    """Told before anything is written."""

    @property
    def number(self) -> int:
        self.check()
        return int((self.world.now - MORNING).total_seconds() // 12) + 1_000

    def check(self) -> None:
        if self.down:
            raise ChainUnavailableError("down")

    async def subnet(self) -> Metagraph:
        return Metagraph(self.netuid, self.number, self.tempo, tuple(self.peers))

    async def block(self) -> Block:
        return Block(BlockRef(self.number, f"0x{self.number:064x}"), self.world.now)

    async def block_hash(self, number: int) -> str | None:
        return f"0x{number:064x}" if number <= self.number else None

    async def commit(self, data: bytes) -> Commitment:
        self.wrote()
        found = Commitment(self.world.operator.address, data, self.number)
        self.committed_data[found.address] = found
        return found

    async def committed(self, address: str) -> Commitment | None:
        self.check()
        return self.committed_data.get(address)


@dataclass(frozen=True)
class Metagraph:
    netuid: int
    block: int
    tempo: int
    peers: Sequence[Peer]


class Grower:
    """Grows problems of its own words. A bank that has as many entries gets the same."""

    def grow(
        self, loaded: LoadedBank, counts: Mapping[Bucket, int], pool: Pool, at: datetime
    ) -> Sequence[Event]:
        intake = Intake(loaded.bank, loaded.clusters, at)
        entries = loaded.bank.entries
        for bucket, count in counts.items():
            for number in range(count):
                name = str(uuid5(NAMESPACE, f"{entries}/{pool}/{bucket}/{number}"))
                products = ("a", "b") if bucket is Bucket.SHOP else ("a",)
                made = banks.problem(name, *(f"{p}-{name}" for p in products), bucket=bucket)
                assert intake.bring(made, pool, banks.FILE, alone=True)
        return intake.taken.events


@dataclass
class Exporter:
    """Takes two looks for a day."""

    begun: list[date] = field(default_factory=list)
    made: list[date] = field(default_factory=list)

    async def advance(self, day: date) -> ExportState:
        if day in self.made:
            return ExportState.MADE
        (self.made if day in self.begun else self.begun).append(day)
        return ExportState.MADE if day in self.made else ExportState.RUNNING


class Beacon:
    """The stand-in, which can be late."""

    def __init__(self) -> None:
        self.late = False
        self._real = Beacons((), "test")

    async def value(self, ticket: Ticket, closes_at: datetime, now: datetime) -> BeaconValue | None:
        return None if self.late else await self._real.value(ticket, closes_at, now)


class Validator:
    """Claims from the queue, seals a record for every problem, and ends the run."""

    def __init__(self, world: World, uri: str) -> None:
        self.world = world
        self.pair = Keypair.create_from_uri(uri)
        self.hotkey = str(self.pair.ss58_address)
        self.signer = KeypairSigner(self.pair)
        self.head = Head()

    async def claim(self) -> Lease | None:
        """Claim a run; with it the validator is heard of."""
        return await self.world.queue.claim(
            self.hotkey, capacity=9, now=self.world.now, lease=LEASE, working=()
        )

    async def run(self, lease: Lease, *, problems: int | None = None) -> None:
        """Run an evaluation to its end, or only some of its problems."""
        ids = lease.evaluation.problems[:problems]
        sealed = [self.seal(self.record(lease, problem_id)) for problem_id in ids]
        await RecordStore(self.world.engine).put(sealed)
        for problem_id, one in zip(ids, sealed, strict=True):
            await self.world.queue.count_record(
                lease.run_id, self.hotkey, problem_id, one.record.hash, self.world.now
            )
        if problems is None:
            await self.end(lease)

    async def end(self, lease: Lease) -> None:
        await self.world.queue.complete(
            lease.run_id, self.hotkey, Ended(RunState.SUCCESS), self.world.now
        )

    async def fail(self, lease: Lease) -> None:
        why = ErrorInfo("model.unreachable", Fault.VALIDATOR, "the provider does not answer")
        await self.world.queue.complete(
            lease.run_id, self.hotkey, Ended(RunState.FAILED, why), self.world.now
        )

    def record(self, lease: Lease, problem_id: str) -> EncodedRecord:
        evaluation = lease.evaluation
        solves = self.world.solves(evaluation.version, problem_id)
        made: RunRecord = builders.record(
            builders.problem(),
            race_id=str(evaluation.evaluation_id),
            run_id=f"{self.hotkey[:6]}-{evaluation.evaluation_id.hex[:12]}-{problem_id[:13]}",
            recommended="1" if solves else None,
            gate=GATE,
        )
        label = str(evaluation.version)
        source = hashlib.sha256(self.world.sources[evaluation.version]).hexdigest()
        return replace(
            made,
            agent=AgentRef(label, "agent", source, label),
            phase=evaluation.kind.value,
            problem=replace(made.problem, problem_id=problem_id),
        ).encode()

    def seal(self, record: EncodedRecord) -> SealedRecord:
        sealed = seal_after(self.head, record, self.signer, now=self.world.now, block=None)
        self.head = Head.of(sealed.sealed)
        return sealed


class World:
    """One arena and its time."""

    def __init__(self, engine: AsyncEngine, chain: ArenaChain | None = None) -> None:
        self.engine = engine
        self.now = MORNING
        self.journal = PostgresJournal(engine)
        self.queue = WorkQueue(engine, POLICY)
        self.operator = KeypairSigner("//Ferdie")
        self.sources: dict[UUID, bytes] = {}
        self.chain = Chain(self)
        self.beacon = Beacon()
        self.exporter = Exporter()
        self.alice, self.bob = (Validator(self, uri) for uri in ("//Alice", "//Bob"))
        self.skill: dict[UUID, float] = {}
        """The share of problems that a version solves."""
        self.chain.peers = [Peer(0, self.alice.hotkey), Peer(1, self.bob.hotkey)]
        self.key = Fernet.generate_key()
        self.parts = Parts(
            engine=engine,
            journal=self.journal,
            queue=self.queue,
            versions=SubmissionStore(engine),
            box=SecretBox([self.key]),
            settings=SETTINGS,
            rotation=ROTATION,
            bank_key=KEY,
            signer=self.operator,
            beacon=self.beacon,
            chain=chain or self.chain,
            rules=RULES,
            grower=Grower(),
            export=self.exporter,
        )
        self.conductor = Conductor(self.parts)

    def solves(self, version: UUID, problem_id: str) -> bool:
        """Whether a version solves a problem: the same whoever runs it."""
        lot = hashlib.sha256(f"{version}/{problem_id}".encode()).digest()[0] / 256
        return lot < self.skill[version]

    async def look(self) -> list[Done]:
        """Look at the calendar now."""
        return await self.conductor.step(self.now)

    def reborn(self, **changed: Any) -> Conductor:
        """Another process takes over, with these parts changed."""
        self.parts = replace(self.parts, **changed)
        self.conductor = Conductor(self.parts)
        return self.conductor

    async def at(self, **later: float) -> list[Done]:
        """Look so much later."""
        self.now += timedelta(**later)
        return await self.look()

    async def until(self, moment: datetime) -> list[Done]:
        """Look at a later moment."""
        self.now = max(self.now, moment)
        return await self.look()

    async def season(self) -> Season:
        return (await load_season(self.journal)).season

    async def bank(self) -> Bank:
        return Bank.folded([entry.event for entry in await self.journal.read("bank")])

    async def enter(self, name: str, skill: float = 1.0, *, stored: bool = True) -> UUID:
        """Submit a version, as the API does after admission."""
        version = uuid5(NAMESPACE, f"version {name}")
        self.sources[version] = f"# {name}\n".encode()
        self.skill[version] = skill
        miner = self.miner(name)
        if all(peer.hotkey != miner for peer in self.chain.peers):
            self.chain.peers.append(Peer(len(self.chain.peers), miner, permit=False))
        loaded = await load_season(self.journal)
        digest = hashlib.sha256(self.sources[version]).hexdigest()
        await command(self.journal, loaded, Submit(str(version), miner, digest), self.now)
        if stored:
            await self.store(name, loaded.entries)
        return version

    async def store(self, name: str, entry: int) -> None:
        """Keep a version's file."""
        version = uuid5(NAMESPACE, f"version {name}")
        source = self.sources[version]
        async with self.engine.begin() as connection:
            await SubmissionStore(self.engine).admit(
                connection,
                version,
                hotkey=self.miner(name),
                name=name,
                source=source,
                artefact=None,
                fingerprint=Fingerprint(hashlib.sha256(source).hexdigest(), (), ()),
                season_entry=entry,
                at=self.now,
            )

    @staticmethod
    def miner(name: str) -> str:
        """The hotkey of an agent's miner."""
        return str(Keypair.create_from_uri(f"//miner/{name}").ss58_address)

    async def work(self) -> int:
        """Everybody does all that there is, in turns; how many runs."""
        runs = 0
        while True:
            leases = [(v, await v.claim()) for v in (self.bob, self.alice)]
            held = [(v, lease) for v, lease in leases if lease is not None]
            for validator, lease in held:
                await validator.run(lease)
            if not held:
                return runs
            runs += len(held)

    def score(self, version: str, problems: Collection[str]) -> float:
        """What a version's records come to on these problems."""
        solved = (self.solves(UUID(version), problem_id) for problem_id in problems)
        return fmean(coefficient(GATE.quality) * one for one in solved)


def told(done: Sequence[Done]) -> list[str]:
    """What was done, by kind."""
    return [one.what for one in done]


def subjects(done: Sequence[Done], what: str) -> list[str]:
    return [one.subject for one in done if one.what == what]


async def views(world: World, version: UUID, kind: EvaluationKind) -> list[str]:
    """States of a version's evaluations of a kind, oldest first."""
    found = await world.queue.evaluations_of(version)
    return [view.state.value for view in found if view.evaluation.kind is kind]
