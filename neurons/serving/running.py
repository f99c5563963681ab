"""One process: the server, the calendar, and an end that leaves nothing half done."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import structlog
import uvicorn
from prometheus_client import CollectorRegistry, start_http_server

from arena.api.app import create_app
from arena.api.services import utc_now
from arena.conducting.conductor import conduct
from arena.exceptions import ArenaError, Fault
from neurons.serving.opening import OpenArena, Settings, open_arena
from neurons.serving.options import ServeOptions
from neurons.serving.workers import supervise
from sandbox.terminal import write_json
from scoring.types import Json

_log = structlog.get_logger(__name__)

GRACE_S = 30
"""How long requests under way may take after SIGTERM."""


async def serve(options: ServeOptions, settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises what `open_arena` raises, and ArenaError for an
    address that cannot be listened on."""
    stopping = asyncio.Event()
    # Listening first: an address that is taken is told at once.
    with _told_to_stop(stopping), _listening(options) as listening:
        async with open_arena(options, settings) as arena:
            if listening is None:
                await _conduct_only(options, settings, arena, stopping)
            else:
                await _serve_api(options, settings, arena, listening, stopping)
    _log.info("stopped")


async def _serve_api(
    options: ServeOptions,
    settings: Settings,
    arena: OpenArena,
    listening: socket.socket,
    stopping: asyncio.Event,
) -> None:
    server = _Server(_config(options, arena))
    tasks: list[asyncio.Task[object]] = [
        asyncio.create_task(server.serve(sockets=[listening]), name="api")
    ]
    tasks.append(asyncio.create_task(stopping.wait(), name="stop"))
    if options.workers > 1:
        workers = supervise(options, listening, options.workers - 1, stopping)
        tasks.append(asyncio.create_task(workers, name="workers"))
    if options.fd is None:
        _tell(options, settings, listening.getsockname()[1])
    async with _conducting(arena, settings, stopping) as calendar:
        watched = {*tasks, calendar} if calendar else set(tasks)
        # Whatever ends first ends the process: half an arena helps nobody.
        await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
        stopping.set()
        server.should_exit = True
        await asyncio.gather(*tasks)


def _tell(options: ServeOptions, settings: Settings, port: int) -> None:
    told: dict[str, Json] = {
        "address": f"{'https' if options.tls else 'http'}://{options.host}:{port}",
        "public": settings.api.public_url,
        "conductor": options.conductor,
        "processes": options.workers,
    }
    _log.info("serving", **told)
    write_json(told, options.json)


async def _conduct_only(
    options: ServeOptions, settings: Settings, arena: OpenArena, stopping: asyncio.Event
) -> None:
    assert arena.conductor is not None
    with _metrics(options, arena.services.metrics.registry):
        _log.info("driving the calendar", metrics_port=options.metrics_port)
        async with _conducting(arena, settings, stopping) as calendar:
            assert calendar is not None
            await calendar


@asynccontextmanager
async def _conducting(
    arena: OpenArena, settings: Settings, stopping: asyncio.Event
) -> AsyncIterator[asyncio.Task[None] | None]:
    """The calendar beside everything else; a look under way is waited for at the end."""
    if arena.conductor is None:
        yield None
        return
    ours = settings.arena.database_url is None
    running = conduct(
        arena.conductor,
        utc_now,
        every_s=settings.conductor.every,
        stopping=stopping,
        revive=arena.database.ready if ours else None,
    )
    task = asyncio.create_task(running, name="conductor")
    try:
        yield task
    finally:
        stopping.set()
        await task


class _Server(uvicorn.Server):
    """Signals are ours: the calendar and the workers stop with the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(options: ServeOptions, arena: OpenArena) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(arena.services),
        host=options.host,
        port=options.port,
        log_config=None,
        access_log=False,
        lifespan="on",
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=options.trusted_proxies,
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=options.tls_certificate,
        ssl_keyfile=options.tls_key,
    )


@contextmanager
def _listening(options: ServeOptions) -> Iterator[socket.socket | None]:
    """The socket that was handed over, or one on the address that was asked for; None for a
    process that answers nothing."""
    if not options.api:
        yield None
        return
    if options.fd is not None:
        found = socket.socket(fileno=options.fd)
    else:
        family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        try:
            found = socket.create_server((options.host, options.port), family=family, backlog=2048)
        except OSError as error:
            raise ArenaError(
                f"{options.host}:{options.port} cannot be listened on: {error.strerror or error}",
                code="arena.bad_address",
                fault=Fault.CALLER,
                remedy="another --port, or end who has it",
            ) from None
    with found:
        yield found


@contextmanager
def _metrics(options: ServeOptions, registry: CollectorRegistry) -> Iterator[None]:
    if options.metrics_port is None:
        yield
        return
    server, thread = start_http_server(options.metrics_port, options.host, registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def _told_to_stop(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
