"""Runs the whole way, step by step, and goes on where it was ended.

A step that is done leaves `OUT/steps/NAME.json`; the same command again passes over it. Each
step is a process of its own: what it takes of memory ends with it, and so does a step that takes
longer than its budget. What it says lies in `OUT/logs/NAME.log`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from scoring.types import JsonObject
from training.exceptions import OverBudgetError, StepFailedError
from training.files import read_json_file, write_file, write_json_file
from training.identity import claim
from training.path.final_race import race_at_the_end
from training.path.practice import write_suites
from training.path.recipe import PathRecipe, resolved
from training.path.steps import (
    BEFORE,
    TRAINED,
    Layout,
    Step,
    corpus_steps,
    evaluation_step,
    training_step,
)

STOP_S: Final = 60.0
"""How long a step that is to end may take for it."""
NOTHING: Final = "training.nothing_to_learn"
_TOLD: Final = re.compile(r"^error ([a-z_.]+): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Way:
    """A run of the whole way. `tell` gets a line for the person who waits."""

    recipe: PathRecipe
    layout: Layout
    agents: Mapping[str, Path]
    """Shipped agents: the race at the end takes `react` and `distilled`."""
    tell: Callable[[str], None]

    def run(self) -> None:
        """Every step that is not done. Raises StepFailedError or OverBudgetError."""
        self._begin()
        for step in corpus_steps(self.layout, self.recipe):
            self._step(step)
        write_suites(self.layout, self.recipe)
        for stage in TRAINED:
            self._step(training_step(self.layout, self.recipe, stage, self.start_of))
        against: list[str] = []
        for name in ("standin", *self.models()):
            self._step(evaluation_step(self.layout, self.recipe, name, against))
            against.append(name)
        self._done("race", lambda: race_at_the_end(self, self.models()))

    def models(self) -> list[str]:
        """The stages that made a model, in their order."""
        return [stage for stage in TRAINED if not self._outcome(stage).get("nothing")]

    def idle(self) -> list[str]:
        """The stages that had nothing to learn."""
        return [stage for stage in TRAINED if self._outcome(stage).get("nothing")]

    def start_of(self, stage: str) -> str:
        """The model that a stage begins with: that of the one before it that made one."""
        before = BEFORE[stage]
        if self._outcome(before).get("nothing"):
            return self.start_of(before)
        return str(self.layout.model(before))

    def steps_done(self) -> dict[str, JsonObject]:
        """What is known of each step that is done, in their order."""
        found = [read_json_file(path) for path in (self.layout.out / "steps").glob("*.json")]
        ordered = sorted(found, key=lambda one: float(str(one["finished_at"])))
        return {str(one["step"]): one for one in ordered}

    def _begin(self) -> None:
        """Make the directory this run's, and write down what each stage is set to."""
        # Who gave a step too little time gives it more, and goes on.
        budgets = {name: {"minutes"} for name in ("world", *TRAINED, "eval", "race")}
        recipe = self.recipe.model_dump(mode="json", exclude=budgets)
        claim(self.layout.out, {"recipe": recipe})
        for stage in (*TRAINED, "eval"):
            settings = getattr(self.recipe, stage)
            said = resolved(settings.recipe).model_dump(mode="json")
            text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True)
            write_file(self.layout.recipe(stage), text.encode())

    def _outcome(self, step: str) -> JsonObject:
        path = self._marker(step)
        return read_json_file(path) if path.exists() else {}

    def _marker(self, step: str) -> Path:
        return self.layout.out / "steps" / f"{step}.json"

    def _spent_file(self, step: str) -> Path:
        return self.layout.out / "spent" / f"{step}.json"

    def _spent(self, step: str) -> float:
        """Seconds that a step took before, where it was ended: they count, too."""
        path = self._spent_file(step)
        return float(str(read_json_file(path)["seconds"])) if path.exists() else 0.0

    def _step(self, step: Step) -> None:
        self._done(
            step.name,
            lambda: self.spend(
                step.name, step.arguments, step.seconds, may_find_nothing=step.may_find_nothing
            ),
        )

    def _done(self, name: str, work: Callable[[], JsonObject]) -> None:
        """Do it unless it is done; its marker is written when it came to its end."""
        if self._marker(name).exists():
            self.tell(f"{name}: done before")
            return
        self.tell(f"{name} …")
        spent, began = self._spent(name), time.monotonic()
        try:
            said = work()
        finally:
            # Also of a step that was ended before it came to its end.
            seconds = round(spent + time.monotonic() - began, 1)
            write_json_file(self._spent_file(name), {"seconds": seconds})
        marker: JsonObject = {"step": name, "seconds": seconds, "finished_at": time.time(), **said}
        write_json_file(self._marker(name), marker)
        nothing = f"; it handed its model on: {said['nothing']}" if said.get("nothing") else ""
        self.tell(f"{name}: {seconds:.0f} s{nothing}")

    def spend(
        self,
        name: str,
        arguments: tuple[str, ...],
        seconds: float,
        variables: Mapping[str, str] | None = None,
        *,
        may_find_nothing: bool = False,
    ) -> JsonObject:
        """Run a command to its end. Raises StepFailedError or OverBudgetError."""
        log = self.layout.out / "logs" / f"{name}.log"
        status, said = run_child(arguments, log, seconds, variables)
        if status is None:
            raise OverBudgetError(
                f"{name} took longer than the {seconds / 60:g} minutes of its recipe",
                remedy="start the same command again: it goes on where this was ended",
            )
        command: JsonObject = {"command": ["arena", *arguments]}
        if status == 0:
            return command
        errors = _TOLD.findall(said)
        code, why = errors[-1] if errors else ("", f"ended with {status}")
        if code == NOTHING and may_find_nothing:
            return command | {"nothing": why}
        raise StepFailedError(
            f"{name}: {f'{code}: ' if code else ''}{why}",
            remedy=f"read {log}; the same command goes on",
        )


def run_child(
    arguments: tuple[str, ...],
    log: Path,
    seconds: float,
    variables: Mapping[str, str] | None = None,
) -> tuple[int | None, str]:
    """`arena` with these arguments: its exit status, None past its time, and what it said now.

    Raises KeyboardInterrupt after the child has ended, when this process is interrupted.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    before = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        child = subprocess.Popen(
            [sys.executable, "-m", "training.path.child", *arguments],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=file,
            env=os.environ | {"COLUMNS": "160"} | dict(variables or {}),
        )
        try:
            status: int | None = child.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            _end(child)
    with log.open("rb") as file:
        file.seek(before)
        return status, file.read().decode("utf-8", "replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child that still runs, in good order if it can."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdin is not None:
        child.stdin.close()
