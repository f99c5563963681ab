"""`arena train`: the stages from a corpus to a model, each a command of its own."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from training.extra import require_extra

COMMANDS: dict[str, tuple[str, str]] = {
    "sft": ("training.commands.sft:app", "Learn to say what a corpus's assistant says."),
    "reject": ("training.commands.reject:app", "Sample, keep what solves, learn from that."),
    "teacher": ("training.commands.teacher:app", "Learn from a stronger model's rollouts."),
    "kto": ("training.commands.kto:app", "Tell the good trajectories from the bad."),
    "head": ("training.commands.head:app", "Train a process-reward head, for grpo."),
    "grpo": ("training.commands.grpo:app", "Dr. GRPO on rollouts of many turns."),
    "all": ("training.commands.all:app", "Every stage, one after the other."),
    "recipes": ("training.commands.recipes:app", "List the shipped recipes, or show one."),
}
"""Name → (module:Typer app, one line of help)."""


class StageGroup(TyperGroup):
    """Imports a stage's module when it is called; shows those that are there."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names, in the order of the stages."""
        return [name for name in COMMANDS if _is_there(name)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the stage's module."""
        if cmd_name not in COMMANDS or not _is_there(cmd_name):
            return None
        if not ctx.resilient_parsing:
            require_extra()
        module_name, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = get_command(getattr(importlib.import_module(module_name), attribute))
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the stages without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _is_there(name: str) -> bool:
    return importlib.util.find_spec(COMMANDS[name][0].partition(":")[0]) is not None


app = typer.Typer(
    cls=StageGroup,
    help="Train a model on an exported corpus, stage by stage.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def _root() -> None:
    """Train a model on an exported corpus, stage by stage.

    Example: arena train sft --recipe tiny_sft --corpus corpus/2026-11-20 --out models/tiny
    """
