"""A validator from its settings to its end: everything opened once, each duty a task of its own.

The claims decide when it is over; every other duty is repeated for ever and survives its own
failures.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import structlog

from arena.client.backoff import Backoff
from arena.client.exceptions import ArenaApiError
from arena.client.session import ArenaSession
from arena.client.validator import ValidatorClient
from arena.races.sealing import LEDGERS
from arena.runs.attempts import RetryPolicy
from arena.runs.ledger import Ledger
from arena.runs.opening import OpenWorld, WorldOptions, open_world
from arena.runs.signing import KeypairSigner
from arena.settings import ArenaSettings
from arena.wallets import open_hotkey
from neurons.chain import HotkeyWallet, open_chain
from neurons.validating.backlog import Backlog
from neurons.validating.chain_watch import ChainWatch
from neurons.validating.claiming import Claiming
from neurons.validating.door import Door
from neurons.validating.evaluation import Stop, Workshop
from neurons.validating.exceptions import ChainForkedError, StartError
from neurons.validating.gates import Gates, disk_gate, money_gate, standing_gate
from neurons.validating.heartbeat import Heart, HeartThread
from neurons.validating.host import host_load
from neurons.validating.metrics import Metrics
from neurons.validating.seal_chain import SealChain
from neurons.validating.settings import Drain, ValidatorSettings
from neurons.validating.spending import Spending
from neurons.validating.starting import (
    check_allowed,
    check_arena,
    check_hotkey,
    check_machine,
    locked,
)
from neurons.validating.weights import WeightSetter
from sandbox.isolation import SandboxLimits, workers_that_fit
from scoring.types import JsonObject

_log = structlog.get_logger(__name__)

ROOT: Final = "validator"
"""The validator's part of the data directory: a directory for each evaluation."""
BUSY_S: Final = 60.0
"""The event loop has not come round for so long: `/health` says that something is wrong."""
_PULSE_S: Final = 1.0


async def run_validator(settings: ValidatorSettings, house: ArenaSettings) -> None:
    """Validate until a signal ends it. Raises ArenaError for what keeps it from starting, and
    ChainForkedError; CancelledError after a second signal."""
    validator = Validator(settings, house)
    loop, me = asyncio.get_running_loop(), asyncio.current_task()
    assert me is not None
    signals = (signal.SIGTERM, signal.SIGINT)

    def signalled() -> None:
        if not validator.drain():
            _log.warning("ended at once, by a second signal")
            me.cancel()

    for number in signals:
        loop.add_signal_handler(number, signalled)
    try:
        await validator.run()
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


@dataclass(slots=True)
class _Pulse:
    """When the event loop last came round (monotonic)."""

    at: float


class Validator:
    """One validator process."""

    def __init__(self, settings: ValidatorSettings, house: ArenaSettings) -> None:
        self._settings = settings
        self._house = house
        self._metrics = Metrics()
        self._draining = asyncio.Event()
        self._pulse = _Pulse(time.monotonic())
        self._root = house.data_dir / ROOT
        self._leases: dict[UUID, datetime] = {}

    def drain(self) -> bool:
        """End in good order; False when that was asked for before."""
        first = not self._draining.is_set()
        self._draining.set()
        return first

    async def run(self) -> None:
        """Open everything, work until drained, close everything."""
        settings, house = self._settings, self._house
        if settings.arena_url is None or settings.catalog is None:
            missing = "--arena.url" if settings.arena_url is None else "--catalog"
            raise StartError(f"{missing} is not given", remedy="python -m neurons.validator --help")
        async with AsyncExitStack() as stack:
            stack.enter_context(locked(self._root))
            signer = open_hotkey(house).signer
            check_hotkey(self._root, signer.address)
            chain = await stack.enter_async_context(self._chain(signer))
            session = await stack.enter_async_context(self._session(signer, self._retried))
            await check_allowed(chain, signer.address, settings.minimum_stake)
            await check_arena(session)
            await check_machine(house.data_dir)
            opened = await stack.enter_async_context(open_world(self._world(), _tell))
            ledger = Ledger(house.data_dir / LEDGERS, signer, block=chain.block)
            heart = Heart(host=lambda: host_load(house.data_dir), beaten=self._beaten)
            stack.enter_context(
                HeartThread(heart, lambda: self._client(signer), settings.heartbeat_seconds)
            )
            spending = Spending(self._root, settings.usd_a_day, _now)
            client = ValidatorClient(session)
            seals = SealChain(client, ledger, self._root)
            await seals.tick()
            shop = self._workshop(client, opened, ledger, heart, spending)
            claiming = self._claiming(shop, chain, spending, seals)
            if settings.metrics_port >= 0:
                door = Door(
                    settings.metrics_host,
                    settings.metrics_port,
                    self._metrics.registry,
                    lambda: self._health(claiming, chain),
                )
                stack.enter_context(door)
                _log.info("metrics and health", host=settings.metrics_host, port=door.port)
            await self._duties(claiming, chain, client, spending, heart, seals)

    async def _duties(
        self,
        claiming: Claiming,
        chain: ChainWatch,
        client: ValidatorClient,
        spending: Spending,
        heart: Heart,
        seals: SealChain,
    ) -> None:
        settings = self._settings
        backlog = Backlog(
            client,
            self._root,
            lambda: claiming.in_hand,
            self._metrics,
            keep_s=settings.keep_hours * 3600,
        )
        fatal: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        duties: list[Awaitable[None]] = [
            self._repeat("backlog", backlog.tick, settings.poll_seconds, fatal),
            self._repeat("seals", seals.tick, settings.retry_first_seconds, fatal),
            self._repeat("chain", chain.look, settings.chain_seconds, fatal),
            self._repeat(
                "pulse", lambda: self._beat(chain, spending, client, heart), _PULSE_S, fatal
            ),
        ]
        if settings.weights:
            weights = WeightSetter(client, chain)

            async def tick() -> None:
                self._metrics.weights.labels((await weights.tick()).value).inc()

            duties.append(self._repeat("weights", tick, settings.weights_seconds, fatal))
        _log.info("validating", arena=settings.arena_url, root=str(self._root))
        tasks = [asyncio.ensure_future(duty) for duty in duties]
        work = asyncio.ensure_future(claiming.run())
        drain = asyncio.ensure_future(self._drain(claiming))
        try:
            await asyncio.wait({work, fatal}, return_when=asyncio.FIRST_COMPLETED)
            for done in (fatal, work):
                if done.done():
                    done.result()
            with suppress(ArenaApiError):
                await backlog.tick()  # what the last run left
            _log.info("drained")
        finally:
            for task in (drain, *tasks, work):
                task.cancel()
            await asyncio.wait({drain, *tasks, work})

    async def _drain(self, claiming: Claiming) -> None:
        """After the first signal: as the settings say, for as long as they allow."""
        await self._draining.wait()
        settings = self._settings
        _log.info(
            "draining: no further run is claimed; a second signal ends at once",
            how=settings.drain.value,
            seconds=settings.drain_seconds,
        )
        if settings.drain is Drain.FINISH:
            claiming.drain()
            await asyncio.sleep(settings.drain_seconds)
            _log.warning("the time to drain is over: what is in hand is returned")
        claiming.stop(Stop.KEEP if settings.drain is Drain.KEEP else Stop.RETURN)

    async def _repeat(
        self,
        name: str,
        duty: Callable[[], Awaitable[Any]],
        every_s: float,
        fatal: asyncio.Future[None],
    ) -> None:
        """Do it again and again. What will not pass by itself ends the validator; everything
        else is logged, and done again."""
        while True:
            try:
                await duty()
            except ChainForkedError as error:
                if not fatal.done():
                    fatal.set_exception(error)
                return
            except Exception:  # noqa: BLE001 - a duty that fails once is done again
                self._metrics.crashes.labels(name).inc()
                _log.exception("a duty failed; it is done again", duty=name)
            await asyncio.sleep(every_s)

    async def _beat(
        self, chain: ChainWatch, spending: Spending, client: ValidatorClient, heart: Heart
    ) -> None:
        """Gauges, and the sign that this loop comes round."""
        self._pulse.at = time.monotonic()
        metrics = self._metrics
        metrics.spent.set(spending.today_usd)
        with suppress(OSError):
            metrics.disk_free.set(shutil.disk_usage(self._house.data_dir).free)
        if (age := chain.age_s()) is not None:
            metrics.chain_age.set(age)
        if (block := chain.block()) is not None:
            metrics.block.set(block.number)
        if (skew := client.session.skew_s) is not None:
            metrics.skew.set(skew)
        held = heart.held
        until = [self._leases[run] for run in held if run in self._leases]
        metrics.lease.set((min(until) - _now()).total_seconds() if until else 0.0)
        for run in [run for run in list(self._leases) if run not in held]:
            self._leases.pop(run, None)

    def _health(self, claiming: Claiming, chain: ChainWatch) -> tuple[bool, JsonObject]:
        stuck_s = time.monotonic() - self._pulse.at
        well = stuck_s < BUSY_S
        status = "draining" if self._draining.is_set() else "ok"
        return well, {
            "status": status if well else "failing",
            "busy_seconds": round(stuck_s, 1),
            "in_hand": [str(evaluation) for evaluation in claiming.in_hand],
            "not_claiming": dict(claiming.shut),
            "chain_age_seconds": chain.age_s(),
        }

    def _beaten(self, run: UUID, until: datetime) -> None:
        self._leases[run] = until

    def _retried(self, error: ArenaApiError, wait_s: float) -> None:
        self._metrics.failures.labels(error.code).inc()
        _log.info("the arena is asked again", code=error.code, error=str(error), in_s=round(wait_s))

    def _backoff(self) -> Backoff:
        return Backoff(self._settings.retry_first_seconds, self._settings.retry_longest_seconds)

    @asynccontextmanager
    async def _session(
        self, signer: KeypairSigner, told: Callable[[ArenaApiError, float], None] | None = None
    ) -> AsyncIterator[ArenaSession]:
        session = ArenaSession(
            self._settings.arena_url or "",
            signer,
            backoff=self._backoff(),
            timeout_s=self._settings.request_seconds,
            told=told,
        )
        async with session:
            yield session

    @asynccontextmanager
    async def _client(self, signer: KeypairSigner) -> AsyncIterator[ValidatorClient]:
        async with self._session(signer) as session:
            yield ValidatorClient(session)

    def _chain(self, signer: KeypairSigner) -> ChainWatch:
        settings, wallet = self._settings, HotkeyWallet(signer.pair)
        return ChainWatch(
            lambda: open_chain(settings.network, settings.netuid, wallet),
            _now,
            timeout_s=settings.chain_timeout_seconds,
        )

    def _world(self) -> WorldOptions:
        settings = self._settings
        assert settings.catalog is not None
        return WorldOptions(
            settings.catalog,
            model=settings.model,
            sandbox=settings.sandbox,
            sandbox_limits=SandboxLimits(
                wall_s=settings.sandbox_seconds,
                memory_bytes=settings.sandbox_memory_mib << 20,
                pids=settings.sandbox_pids,
            ),
            titles=settings.title,
            title_model=settings.title_model,
            judge=True,
        )

    def _workshop(
        self,
        client: ValidatorClient,
        opened: OpenWorld,
        ledger: Ledger,
        heart: Heart,
        spending: Spending,
    ) -> Workshop:
        settings, house = self._settings, self._house
        fit = settings.workers or workers_that_fit(opened.world.sandbox_limits)
        return Workshop(
            client=client,
            opened=opened,
            ledger=ledger,
            heart=heart,
            spending=spending,
            metrics=self._metrics,
            root=self._root,
            policy=RetryPolicy(house.attempts, house.retry_seconds),
            workers=max(1, fit // settings.evaluations),
            backoff=self._backoff(),
        )

    def _claiming(
        self, shop: Workshop, chain: ChainWatch, spending: Spending, seals: SealChain
    ) -> Claiming:
        settings, data_dir = self._settings, self._house.data_dir
        hotkey = shop.ledger.signer.address
        gates = Gates(
            {
                "disk": disk_gate(data_dir, settings.disk_floor_gib),
                "spending": money_gate(spending, settings.usd_a_day),
                "standing": standing_gate(hotkey, settings.minimum_stake, lambda: chain.subnet),
                "seals": seals.gate,
            },
            lambda gate, shut: self._metrics.gates.labels(gate).set(shut),
        )
        return Claiming(
            shop,
            gates,
            evaluations=settings.evaluations,
            poll_s=settings.poll_seconds,
            host=lambda: host_load(data_dir),
        )


def _now() -> datetime:
    return datetime.now(UTC)


def _tell(line: str) -> None:
    _log.info(line)
