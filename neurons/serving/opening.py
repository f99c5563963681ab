"""From settings to an arena that is ready to be served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import structlog
from sqlalchemy.exc import SQLAlchemyError

from arena.api.links import open_links
from arena.api.metagraph import RAO_PER_TAO, MetagraphCache, Peer
from arena.api.objects import open_store
from arena.api.services import TRUSTED_S, Services, utc_now
from arena.api.settings import ApiSettings, load_api_settings
from arena.conducting.beacons import Beacons
from arena.conducting.conductor import Conductor
from arena.conducting.metrics import ConductorMetrics
from arena.conducting.parts import Parts
from arena.conducting.settings import ConductorSettings, load_conductor_settings, read_rules
from arena.conducting.stock import CatalogGrower
from arena.db.engine import Database, database_error, open_database
from arena.db.journal import PostgresJournal
from arena.db.migrate import is_current
from arena.exceptions import DatabaseError, Fault
from arena.problems.settings import BankSettings, bank_key, load_bank_settings
from arena.records.store import RecordStore
from arena.secrets import open_secret_box
from arena.settings import ArenaSettings, load_settings
from arena.submissions.policy_file import load_policy
from arena.submissions.store import SubmissionStore
from arena.wallets import Hotkey, open_hotkey
from arena.work.queue import WorkQueue
from neurons.chain import HotkeyWallet, open_chain
from neurons.cli import SHIPPED_AGENTS
from neurons.reconnecting import ReconnectingChain
from neurons.serving.exporting import CorpusExport
from neurons.serving.options import ServeOptions
from sandbox.catalog import open_catalog

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Settings:
    """All that is read from the environment, checked before anything is opened."""

    arena: ArenaSettings
    api: ApiSettings
    conductor: ConductorSettings
    bank: BankSettings

    @classmethod
    def load(cls) -> Settings:
        """Raises SettingsError naming the first variable that is wrong."""
        return cls(
            load_settings(), load_api_settings(), load_conductor_settings(), load_bank_settings()
        )


@dataclass(frozen=True, slots=True)
class OpenArena:
    """What a process serves. `conductor` is None where another one drives the calendar."""

    services: Services
    conductor: Conductor | None
    database: Database


@asynccontextmanager
async def open_arena(options: ServeOptions, settings: Settings) -> AsyncIterator[OpenArena]:
    """Database, store, links, chain and, where it is wanted, the conductor; closed at the end.

    Raises SettingsError, DatabaseError, DatabaseUnreachableError and StoreError, each with what
    to do. A chain that is away is no reason not to start.
    """
    hotkey = await asyncio.to_thread(open_hotkey, settings.arena)
    wallet = HotkeyWallet(hotkey.signer.pair)
    async with (
        open_database(settings.arena, trusted_s=TRUSTED_S) as database,
        ReconnectingChain(lambda: open_chain(options.network, options.netuid, wallet)) as chain,
    ):
        await _make_ready(database, options, settings)
        services = _services(database, settings, chain)
        if not options.conductor:
            yield OpenArena(services, None, database)
            return
        parts = await asyncio.to_thread(_parts, services, settings, hotkey, chain)
        try:
            metrics = ConductorMetrics(services.metrics.registry)
            yield OpenArena(services, Conductor(parts, metrics), database)
        finally:
            if isinstance(parts.export, CorpusExport):
                await parts.export.stop()


async def _make_ready(database: Database, options: ServeOptions, settings: Settings) -> None:
    """Start and migrate the embedded database; another one only when that was asked for."""
    given = settings.arena.database_url is not None
    if given and not options.migrate:
        try:
            current = await is_current(database.engine)
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise database_error(error, database.where) from error
        if not current:
            raise DatabaseError(
                f"{database.where} has another schema than this program's",
                fault=Fault.CALLER,
                remedy="arena serve --migrate brings it up to date; make a backup first",
            )
    await database.ready()
    _log.info("the database answers", where=database.where, guard=str(database.guard))


def _services(database: Database, settings: Settings, chain: ReconnectingChain) -> Services:
    links = open_links(settings.api)
    return Services(
        settings=settings.api,
        engine=database.engine,
        queue=WorkQueue(database.engine),
        records=RecordStore(database.engine),
        journal=PostgresJournal(database.engine),
        objects=open_store(settings.api, links),
        metagraph=MetagraphCache(
            chain.subnet,
            utc_now,
            refresh_s=settings.api.metagraph_refresh,
            max_age_s=settings.api.metagraph_max_age,
        ),
        links=links,
        secrets=open_secret_box(settings.arena),
        policy=load_policy(settings.api.admission_policy),
        shipped_agents=SHIPPED_AGENTS,
    )


def _parts(
    services: Services, settings: Settings, hotkey: Hotkey, chain: ReconnectingChain
) -> Parts:
    """What the calendar works with; says once what it lacks. Blocks: a catalogue is opened."""
    wanted = settings.conductor
    if hotkey.local:
        _log.warning(
            "heads of the log are signed by a local key: no root goes on chain until it is"
            " registered; name the operator's wallet with ARENA_WALLET_NAME",
            hotkey=hotkey.signer.address,
        )
    key = bank_key(settings.bank, settings.arena.data_dir)
    grower = None
    if wanted.catalog is None:
        _log.warning("the bank does not grow by itself: no ARENA_CONDUCTOR_CATALOG")
    else:
        grower = CatalogGrower(open_catalog(wanted.catalog), key)
    export = None
    if wanted.export_dir is None or wanted.catalog is None:
        _log.warning(
            "no corpus is exported: give ARENA_CONDUCTOR_EXPORT_DIR and ARENA_CONDUCTOR_CATALOG"
        )
    else:
        export = CorpusExport(wanted.export_dir, (wanted.catalog,))
    minimum = int(settings.api.minimum_stake * RAO_PER_TAO)
    banned = settings.api.banned_hotkeys

    def validates(peer: Peer) -> bool:
        return peer.permit and peer.stake >= minimum and peer.hotkey not in banned

    return Parts(
        engine=services.engine,
        journal=services.journal,
        queue=services.queue,
        versions=SubmissionStore(services.engine),
        box=open_secret_box(settings.arena),
        settings=wanted,
        rotation=settings.bank.rotation,
        bank_key=key,
        signer=hotkey.signer,
        beacon=Beacons(wanted.drand_servers, wanted.standin_seed, chain),
        chain=chain,
        rules=None if wanted.rules is None else read_rules(wanted.rules),
        validates=validates,
        grower=grower,
        export=export,
    )
