"""How far a race is: bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from arena.races.schedule import Board
from arena.runs.record import RunSummary
from sandbox.terminal import plain


class RaceProgress(Protocol):
    """Told of every problem that a worker has done with."""

    def done(self, summary: RunSummary) -> None:
        """A problem is closed, or left open."""
        ...


@contextmanager
def show_progress(board: Board, console: Console) -> Iterator[RaceProgress]:
    """Show a race's progress while the context lasts; what was done before counts."""
    if not console.is_terminal:
        yield _Lines(board, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[tally]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        yield _Bars(board, bars)


class _Tally:
    """Counts of one agent while the race runs."""

    def __init__(self) -> None:
        self.done = self.successes = self.open = 0

    def add(self, summary: RunSummary) -> None:
        """Count a problem."""
        self.done += 1
        self.successes += summary.success
        self.open += not summary.closed

    def __str__(self) -> str:
        return f"✓ {self.successes}" + (f"  open {self.open}" if self.open else "")


def _tallies(board: Board) -> dict[str, _Tally]:
    tallies = {label: _Tally() for label in board.agents}
    for summary in board.summaries():
        if summary.closed:
            tallies[summary.agent].add(summary)
    return tallies


class _Bars:
    """One bar an agent."""

    def __init__(self, board: Board, bars: Progress) -> None:
        self._tallies = _tallies(board)
        self._bars = bars
        self._ids = {
            label: bars.add_task(
                plain(label, 30), total=len(board.problems), completed=t.done, tally=str(t)
            )
            for label, t in self._tallies.items()
        }

    def done(self, summary: RunSummary) -> None:
        tally = self._tallies[summary.agent]
        tally.add(summary)
        self._bars.update(self._ids[summary.agent], completed=tally.done, tally=str(tally))


class _Lines:
    """About twenty lines a race, whatever its size, and one for every open problem."""

    def __init__(self, board: Board, console: Console) -> None:
        self._tallies = _tallies(board)
        self._console = console
        self._total = len(board)
        self._every = max(1, self._total // 20)

    def done(self, summary: RunSummary) -> None:
        self._tallies[summary.agent].add(summary)
        if not summary.closed and summary.failure is not None:
            self._console.print(
                f"open: {plain(summary.agent, 40)} on {plain(summary.problem_id, 60)}:"
                f" {plain(summary.failure.message, 200)}",
                soft_wrap=True,
            )
        done = sum(tally.done for tally in self._tallies.values())
        if done % self._every == 0 or done == self._total:
            each = ", ".join(f"{plain(a, 40)} {t}" for a, t in self._tallies.items())
            self._console.print(f"{done}/{self._total}  {each}", soft_wrap=True)
