"""How a run goes, on a terminal or in a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from sandbox.terminal import console, plain


class ShownRun:
    """Watches a run: a bar on a terminal, a line now and then elsewhere.

    `shown` are the measurements told, in this order.
    """

    def __init__(self, name: str, shown: Sequence[str], every: int = 25) -> None:
        self._name = name
        self._shown = tuple(shown)
        self._every = every
        self._total = 0
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[said]}"),
        )
        self._bars = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._bars.add_task(name, total=None, said="")

    def __enter__(self) -> ShownRun:
        self._bars.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.__exit__(kind, error, trace)

    def began(self, total: int, done: int) -> None:
        """A run of `total` updates begins, or goes on after `done`."""
        self._total = total
        self._bars.reset(self._task, total=total, completed=done, said="")
        if done:
            console.print(f"{plain(self._name)}: goes on after update {done} of {total}")

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        """One more update is done."""
        said = "  ".join(
            f"{name.replace('_', ' ')} {values[name]:.4g}" for name in self._shown if name in values
        )
        self._bars.update(self._task, completed=done, said=said)
        measured = any(name.startswith("held_out") for name in values)
        if not console.is_terminal and (measured or done % self._every == 0):
            console.print(f"{plain(self._name)} {done}/{self._total}  {said}", soft_wrap=True)
