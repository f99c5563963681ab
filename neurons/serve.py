"""`arena serve`: the arena's API and the driver of its calendar."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from arena.exceptions import SettingsError
from neurons.serving.options import ServeOptions
from sandbox.terminal import JsonFile

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_HERE = ("127.0.0.1", "::1", "localhost")


class LogFormat(StrEnum):
    """How logs are written."""

    TEXT = "text"
    JSON = "json"


@app.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: any free one.")] = 8000,
    network: Annotated[
        str,
        typer.Option(
            "--subtensor.network",
            help="finney, test, an address, or local-chain:FILE for development.",
        ),
    ] = "finney",
    netuid: Annotated[int, typer.Option(min=0, max=65_535, help="The subnet.")] = 15,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes that answer requests.")
    ] = 1,
    conductor: Annotated[
        bool, typer.Option(help="Drive the calendar, too: of all processes one does at a time.")
    ] = True,
    conductor_only: Annotated[
        bool, typer.Option("--conductor-only", help="Drive the calendar and answer nothing.")
    ] = False,
    migrate: Annotated[
        bool,
        typer.Option(
            "--migrate", help="Bring ARENA_DATABASE_URL's schema up to date; backup first."
        ),
    ] = False,
    tls_certificate: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="PEM; else a proxy has TLS.")
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="PEM of its key.")
    ] = None,
    trusted_proxies: Annotated[
        str, typer.Option(help="Proxies whose X-Forwarded-For is believed, with commas.")
    ] = "127.0.0.1",
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="With --conductor-only: for Prometheus."),
    ] = None,
    log_format: Annotated[
        LogFormat, typer.Option(envvar="ARENA_LOG_FORMAT", help="On standard error.")
    ] = LogFormat.TEXT,
    fd: Annotated[int | None, typer.Option(hidden=True, min=3)] = None,
    json: JsonFile = None,
) -> None:
    """Serve the arena: its API for validators and miners, and the calendar of its races.

    Without ARENA_DATABASE_URL an embedded Postgres is started in ARENA_DATA_DIR and brought up
    to date. SIGTERM ends it: requests under way are answered first. Serve over TLS, here or at a
    proxy; ARENA_API_PUBLIC_URL is the address that links are made with. --json says the address
    as soon as it listens.

    Example: arena serve --subtensor.network local-chain:chain.sqlite --netuid 15

    Example: arena serve --host 0.0.0.0 --workers 4 --subtensor.network finney --netuid 15
    """
    options = ServeOptions(
        host=host,
        port=port,
        network=network,
        netuid=netuid,
        workers=workers,
        api=not conductor_only,
        conductor=conductor or conductor_only,
        migrate=migrate,
        log_json=log_format is LogFormat.JSON,
        tls_certificate=tls_certificate,
        tls_key=tls_key,
        trusted_proxies=trusted_proxies,
        metrics_port=metrics_port,
        fd=fd,
        json=json,
    )
    if (tls_certificate is None) != (tls_key is None):
        raise SettingsError("--tls-certificate and --tls-key go together")
    if conductor_only and not conductor:
        raise SettingsError("--conductor-only and --no-conductor leave nothing to do")
    if conductor_only and workers > 1:
        raise SettingsError("--workers answer requests; --conductor-only answers none")
    # Only here: the SDK, the drivers and the API take seconds to load.
    from neurons.serving.logs import configure_logs
    from neurons.serving.opening import Settings
    from neurons.serving.running import serve as run

    settings = Settings.load()
    configure_logs(as_json=options.log_json)
    _warn(options)
    asyncio.run(run(options, settings))


def _warn(options: ServeOptions) -> None:
    import structlog

    if options.api and options.fd is None and options.host not in _HERE and not options.tls:
        structlog.get_logger(__name__).warning(
            "serving in plain HTTP beyond this machine: put TLS before it, or who listens can"
            " use up a request's signature with a body of their own",
            host=options.host,
        )
