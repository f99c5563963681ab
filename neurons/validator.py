"""`python -m neurons.validator`: claim agents, race and judge them, sign and send, set weights."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from arena.runs.opening import SandboxKind
from arena.settings import load_settings
from neurons.validating.logs import configure_logs
from neurons.validating.settings import Drain, load_validator_settings
from sandbox.terminal import one_line_errors

EXIT_TERMINATED = 128 + signal.SIGTERM

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command()
def validate(
    arena_url: Annotated[
        str | None, typer.Option("--arena.url", help="The arena's address, https://host.")
    ] = None,
    catalog: Annotated[
        Path | None, typer.Option("--catalog", help="A product file, or a built index.")
    ] = None,
    netuid: Annotated[int | None, typer.Option(min=0, help="The subnet; default 15.")] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--subtensor.network",
            envvar="BT_NETWORK",
            help="finney, test, an address, or local-chain:FILE; default finney.",
        ),
    ] = None,
    wallet_name: Annotated[
        str | None,
        typer.Option("--wallet.name", envvar="BT_WALLET", help="Wallet whose hotkey validates."),
    ] = None,
    wallet_hotkey: Annotated[
        str | None,
        typer.Option("--wallet.hotkey", envvar="BT_WALLET_HOTKEY", help="Its hotkey."),
    ] = None,
    wallet_path: Annotated[
        Path | None,
        typer.Option("--wallet.path", envvar="BT_WALLET_PATH", help="Where wallets lie."),
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where records are kept until the arena has them.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that agents are told of.")] = None,
    sandbox: Annotated[SandboxKind | None, typer.Option(help="Default: what is ready.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Problems at once; default from memory and cores.")
    ] = None,
    weights: Annotated[
        bool | None, typer.Option("--weights/--no-weights", help="Set weights; default: yes.")
    ] = None,
    drain: Annotated[
        Drain | None, typer.Option(help="What SIGTERM does with what is in hand.")
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port of /metrics and /health; -1 serves none.")
    ] = None,
    log_json: Annotated[
        bool | None, typer.Option("--log-json/--log-text", help="One JSON object a line.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
) -> None:
    """Validate: claim agents from an arena, race and judge them, sign and send what came of it,
    and set weights.

    Everything else is set by ARENA_VALIDATOR_… variables or .env (docs/validator.md). SIGTERM
    ends it in good order, a second one at once. Exit code 0 means that it was drained.

    Example: python -m neurons.validator --netuid 15 --subtensor.network test --wallet.name me
    --wallet.hotkey validator --arena.url https://arena.example --catalog index/
    """
    with one_line_errors(debug=lambda: debug):
        given = {
            "arena_url": arena_url,
            "catalog": catalog,
            "netuid": netuid,
            "network": network,
            "model": model,
            "sandbox": sandbox,
            "workers": workers,
            "weights": weights,
            "drain": drain,
            "metrics_port": metrics_port,
            "log_json": log_json,
        }
        settings = load_validator_settings(given)
        house = {
            "wallet_name": wallet_name,
            "wallet_hotkey": wallet_hotkey,
            "wallet_path": wallet_path,
            "data_dir": data_dir,
        }
        house_settings = load_settings().model_copy(
            update={name: value for name, value in house.items() if value is not None}
        )
        configure_logs(as_json=settings.log_json)
        from neurons.validating.running import run_validator  # seconds to import

        try:
            asyncio.run(run_validator(settings, house_settings))
        except asyncio.CancelledError:
            raise SystemExit(EXIT_TERMINATED) from None


if __name__ == "__main__":
    app()
