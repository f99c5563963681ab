"""What the stages hand each other: samples, generations, rollouts. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from scoring.exceptions import ErrorInfo
from scoring.outcome import Outcome
from scoring.types import Bucket, JsonObject

Ids: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]
Logprobs: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One rendered conversation, as a trainer sees it.

    `mask` is true at the tokens that the model is to produce: its thinking, its text, its
    calls and the end of each of its turns. The loss at position i is that of predicting
    `ids[i]` from what is before it, so `mask[0]` is always false. `row` is the record hash of
    the corpus row (or what else tells where it comes from), `cluster` its leak cluster.
    """

    ids: Ids
    mask: Mask
    row: str
    cluster: str
    weight: float = 1.0

    def __len__(self) -> int:
        return len(self.ids)


class Stop(StrEnum):
    """Why a generation ended."""

    END = "end"
    """The model ended its turn; the stop token is the last of `ids`."""
    LENGTH = "length"
    """No room was left: the most tokens that were asked for, or the context."""
    ERROR = "error"
    """The engine or the server failed."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the next token is chosen. Temperature 0 takes the likeliest one."""

    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None
    """One seed and the same prompts give the same tokens."""
    stop_ids: tuple[int, ...] = ()
    """Tokens that end a generation, and are kept; empty: those of the renderer."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What was sampled after one prompt: ids with the stop token, if there was one.

    `logprobs[i]` is the natural logarithm of the probability with which `ids[i]` was drawn:
    that of the distribution at `temperature`, before `top_p` cut it, since the importance
    ratio of a policy gradient compares it with the trainer's own.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: Stop


class Policy(Protocol):
    """What samples tokens: an engine in this process, or a server behind a wire."""

    async def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling
    ) -> Sequence[Generated]:
        """One generation for each prompt, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a rollout: what the policy was given and what it said."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: Stop


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Turns of a rollout that extend each other to the token: one sequence to learn from.

    `mask` is true at what the policy sampled (`logprobs` there are the sampler's, 0 elsewhere);
    observations and scaffold are false. `turns` are the indices of its turns, `turn_of[i]` the
    turn that sampled token i, -1 elsewhere.
    """

    ids: Ids
    mask: Mask
    logprobs: Logprobs
    turns: range
    turn_of: Ids


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """A rollout of one problem. A single segment, unless a turn could not extend the last."""

    problem_id: str
    bucket: Bucket
    cluster: str
    turns: tuple[Turn, ...]
    segments: tuple[Segment, ...]
    messages: tuple[JsonObject, ...] = ()
    outcome: Outcome | None = None
    """None when the rollout failed by no fault of the policy: see `error`."""
    reward: float | None = None
    error: ErrorInfo | None = None
    facts: JsonObject = field(default_factory=dict)
    """What else is counted of it: malformed calls, ids that nothing showed, tokens."""

    @property
    def truncated(self) -> bool:
        """Whether a turn ended for want of room."""
        return any(turn.stop is Stop.LENGTH for turn in self.turns)
