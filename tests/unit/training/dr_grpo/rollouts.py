"""Rollouts of a tiny model on made-up problems, with what they came to decided by the test."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from scoring.exceptions import ErrorInfo, Fault
from scoring.outcome import Axes, Outcome, Reason
from scoring.types import Bucket
from tests.unit.training.generation.models import plain_logprobs
from training.render.checking import Scaffold
from training.rollouts.segments import segments_of
from training.types import Stop, Trajectory, Turn

HEADER, END, NEVER = (90, 91), 92, 93
SCAFFOLD = Scaffold(HEADER, END, frozenset({NEVER}))


def outcome(success: bool) -> Outcome:
    reason = None if success else Reason.NO_RECOMMENDATION
    return Outcome(Bucket.PRODUCT, success, reason, success, Axes())


def rollout(
    success: bool | None,
    *,
    seed: int = 0,
    problem: str = "p",
    turns: int = 2,
    model: torch.nn.Module | None = None,
    stop: Stop = Stop.END,
    broken: bool = False,
) -> Trajectory:
    """Turns of random tokens. With `model`, the log-probabilities are its own. `broken` makes
    the second turn's prompt no continuation of the first."""
    rng = random.Random(f"{seed} {problem}")
    held: list[int] = [rng.randrange(80) for _ in range(4)]
    made = []
    for number in range(turns):
        if broken and number:
            held = [rng.randrange(80) for _ in range(3)]
        prompt = [*held, NEVER, rng.randrange(80), *HEADER]
        said = [*(rng.randrange(80) for _ in range(rng.randrange(2, 5))), END]
        logprobs = (
            plain_logprobs(model, prompt, said, 1.0)  # type: ignore[arg-type]
            if model is not None
            else [-0.5] * len(said)
        )
        made.append(Turn(tuple(prompt), tuple(said), tuple(logprobs), stop))
        held = [*prompt, *said]
    return Trajectory(
        problem_id=problem,
        bucket=Bucket.PRODUCT,
        cluster=f"cluster-{problem}",
        turns=tuple(made),
        segments=segments_of(made),
        messages=({"role": "user", "content": "x"},),
        outcome=None if success is None else outcome(success),
        error=ErrorInfo("down", Fault.VALIDATOR, "no answer") if success is None else None,
        facts={"steps": turns},
    )


def group(
    wins: Sequence[bool | None], problem: str = "p", model: torch.nn.Module | None = None
) -> list[Trajectory]:
    return [
        rollout(win, seed=number, problem=problem, model=model) for number, win in enumerate(wins)
    ]
