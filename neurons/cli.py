"""The `arena` command. Mounts each room's commands and imports a room only when used."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sandbox.terminal import one_line_errors

if TYPE_CHECKING:
    from arena.chain import Chain
    from arena.runs.signing import KeypairSigner

COMMANDS: dict[str, tuple[str, str]] = {
    "catalog": ("sandbox.catalog.cli:app", "Build, generate and search product catalogues."),
    "problems": ("arena.problems.cli:app", "Make problems, and keep the bank."),
    "agent": ("arena.submissions.cli:app", "Try an agent locally, check it before you submit it."),
    "race": ("arena.races.cli:app", "Race agents on suites of problems."),
    "records": ("arena.records.cli:app", "Verify, prove and show what is recorded."),
    "judge": ("judge.cli:app", "Judge traces, and measure how well judges agree."),
    "corpus": ("corpus_export.cli:app", "Export, verify and describe corpora of trajectories."),
    "serve": ("neurons.serve:app", "Serve the arena: API and calendar."),
    "chain": ("neurons.local_chain.cli:app", "Keep a local chain for development."),
    "eval": ("training.evaluation.cli:app", "Evaluate a model, beside the paper's table."),
    "model": ("training.serving.cli:app", "Serve trained models."),
    "train": ("training.cli:app", "Train a model on a corpus, stage by stage."),
    "conformance": ("arena.conformance:app", "Prove agreement with the shared test vectors."),
    "doctor": ("neurons.doctor:app", "Say what this machine has and lacks."),
    "demo": ("neurons.demo.command:app", "Race honest and dishonest agents on a generated world."),
}
"""Name → (module:Typer app, one line of help). The line stands here so that
`arena --help` imports no room."""

SHIPPED_AGENTS: dict[str, Path] = {
    name: Path(__file__).parent / "agents" / f"{name}.py"
    for name in ("react", "pipeline", "distilled")
}
"""Agents that a command takes by name."""


class LazyGroup(TyperGroup):
    """A group that imports a command's module when the command is called.

    Every error of every command ends here, as one line. Typer carries its own copy of
    click and exports no types of it: hence `Any`.
    """

    _debug = False

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command line. Errors of its syntax are told, and left with 2, inside."""
        with one_line_errors(debug=lambda: self._debug):
            return super().main(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was parsed."""
        self._debug = bool(ctx.params["debug"])
        return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of a newcomer's day."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the room that owns `cmd_name`."""
        if cmd_name not in COMMANDS:
            return None
        module_name, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = get_command(getattr(importlib.import_module(module_name), attribute))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


app = typer.Typer(
    cls=LazyGroup,
    help="An open arena for shopping agents. Start with `arena doctor`, then `arena demo`.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)


def _open_chain(
    network: str, netuid: int, signer: KeypairSigner | None = None
) -> AbstractAsyncContextManager[Chain]:
    """A chain, for commands of rooms that know no SDK; with a signer it can be written to."""
    from neurons.chain import HotkeyWallet, open_chain

    wallet = HotkeyWallet(signer.pair) if signer is not None else None
    return open_chain(network, netuid, wallet)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"arena {version('sn15-arena')}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    ctx.obj = {"shipped_agents": SHIPPED_AGENTS, "open_chain": _open_chain}


def main(argv: Sequence[str] | None = None) -> Any:
    """Entry point of the `arena` script."""
    return app(args=list(argv) if argv is not None else None)
