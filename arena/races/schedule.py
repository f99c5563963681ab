"""Which runs are still to be made, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from arena.runs.record import RunSummary
from arena.runs.verdicts import VerdictSummary


@dataclass(frozen=True, slots=True, order=True)
class Task:
    """One agent on one problem, by their positions in the race."""

    problem: int
    agent: int


def interleaved(agents: int, problems: int) -> Iterator[Task]:
    """All tasks, problem by problem, so that every agent progresses.

    Who begins a problem rotates: no agent is always the one that waits.
    """
    for problem in range(problems):
        for turn in range(agents):
            yield Task(problem, (problem + turn) % agents)


class Board:
    """What is known of every task: closed, open after a failure, or not yet run.

    Each task keeps the attempt that closed it, else its latest one. A task that is
    closed stays so: a later attempt, say of a process that was thought dead, changes
    nothing.
    """

    def __init__(self, agents: Sequence[str], problems: Sequence[str]) -> None:
        self.agents = tuple(agents)
        self.problems = tuple(problems)
        self._agent_at = {label: i for i, label in enumerate(agents)}
        self._problem_at = {problem_id: i for i, problem_id in enumerate(problems)}
        self._known: dict[Task, RunSummary] = {}
        self._attempts: dict[Task, int] = {}
        self._task_of: dict[str, Task] = {}

    def __len__(self) -> int:
        return len(self.agents) * len(self.problems)

    def add(self, summary: RunSummary) -> None:
        """Take in an attempt. Raises KeyError for one that is not of this race."""
        task = Task(self._problem_at[summary.problem_id], self._agent_at[summary.agent])
        self._attempts[task] = max(self._attempts.get(task, 0), summary.attempt)
        self._task_of[summary.run_id] = task
        known = self._known.get(task)
        if known is None or not known.closed:
            self._known[task] = summary

    def add_verdict(self, verdict: VerdictSummary) -> None:
        """Take in a later verdict; the first one on a run stays.

        Raises KeyError when it is on no run of this race.
        """
        task = self._task_of[verdict.run_id]
        known = self._known[task]
        if known.run_id == verdict.run_id and not known.judged:
            self._known[task] = replace(
                known,
                judgement=verdict.verdict,
                coefficient=verdict.coefficient,
                final_score=verdict.final_score,
            )

    def unjudged(self) -> list[RunSummary]:
        """The closed runs that no judge has spoken on, in the order of the race."""
        order = interleaved(len(self.agents), len(self.problems))
        known = (self._known.get(task) for task in order)
        return [run for run in known if run is not None and run.closed and not run.judged]

    def open(self) -> list[Task]:
        """Tasks without an outcome, in fair order."""
        order = interleaved(len(self.agents), len(self.problems))
        return [task for task in order if not self._closed(task)]

    def next_attempt(self, task: Task) -> int:
        """The number of the task's next attempt, counted from 1 over all processes."""
        return self._attempts.get(task, 0) + 1

    def results(self, agent: int) -> list[RunSummary | None]:
        """What is known of an agent's problems, in their order; None is not yet run."""
        return [self._known.get(Task(problem, agent)) for problem in range(len(self.problems))]

    @property
    def closed(self) -> int:
        """How many tasks have an outcome."""
        return sum(summary.closed for summary in self._known.values())

    def summaries(self) -> Iterable[RunSummary]:
        """The attempt that counts of every task that was run."""
        return self._known.values()

    def _closed(self, task: Task) -> bool:
        known = self._known.get(task)
        return known is not None and known.closed
