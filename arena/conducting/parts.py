"""What the calendar works with, given to it once when it is made."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.inputs import InputStore
from arena.api.metagraph import Peer, Subnet
from arena.chain import Chain
from arena.conducting.beacons import Beacon
from arena.conducting.race_secrets import RaceSecrets
from arena.conducting.settings import ConductorSettings
from arena.journal import Event, Journal
from arena.problems.bank_store import LoadedBank
from arena.problems.pools import Pool
from arena.problems.rotation import RotationRule
from arena.runs.signing import Signer
from arena.season.rules import SeasonRules
from arena.secrets import SecretBox
from arena.work.queue import WorkQueue
from scoring.types import Bucket


class Version(Protocol):
    """An admitted agent version."""

    @property
    def name(self) -> str:
        """The agent's, as its miner gave it: hostile text."""
        ...


class Versions(Protocol):
    """Where the files of submissions lie: `arena.submissions.store.SubmissionStore`."""

    async def version(self, version_id: UUID) -> Version | None:
        """A version; None for an unknown one."""
        ...

    async def source(self, version_id: UUID) -> bytes:
        """Its file, as it was submitted."""
        ...


class ArenaChain(Chain, Protocol):
    """The chain, and the subnet on it."""

    async def subnet(self) -> Subnet:
        """The metagraph now."""
        ...


class Grower(Protocol):
    """Makes problems for the bank."""

    def grow(
        self, loaded: LoadedBank, counts: Mapping[Bucket, int], pool: Pool, at: datetime
    ) -> Sequence[Event]:
        """The events that bring so many problems to a pool. Blocks: called in a thread."""
        ...


class ExportState(StrEnum):
    """How far the export of a day is."""

    MADE = "made"
    RUNNING = "running"


class NightlyExport(Protocol):
    """Writes the corpus of a day, beside everything else."""

    async def advance(self, day: date) -> ExportState:
        """Begin the export of a closed day, or look how far it is. Never waits for it.

        Raises ArenaError when it failed; called again, it begins anew.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything behind the calendar."""

    engine: AsyncEngine
    journal: Journal
    queue: WorkQueue
    versions: Versions
    box: SecretBox
    settings: ConductorSettings
    rotation: RotationRule
    bank_key: bytes
    """Seeds rotations; secret."""
    signer: Signer
    """The operator's hotkey: signs the log's heads."""
    beacon: Beacon
    chain: ArenaChain | None = None
    """Without one nobody joins, leaves or is deregistered, and no root is put on chain."""
    rules: SeasonRules | None = None
    """As the operator's file has them; None leaves them as they are."""
    validates: Callable[[Peer], bool] = lambda peer: peer.permit
    """Whether a neuron may validate: its permit, its stake, no ban."""
    grower: Grower | None = None
    export: NightlyExport | None = None
    random: Callable[[int], bytes] = secrets.token_bytes
    inputs: InputStore = field(init=False)
    secrets: RaceSecrets = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", InputStore(self.engine))
        object.__setattr__(self, "secrets", RaceSecrets(self.engine, self.box, self.random))
