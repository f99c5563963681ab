"""Continuous batching: requests join and leave a running batch, token by token.

A step lets waiting requests in (their prompts, less what some row of the cache already
holds, go through the model first) and then decodes one token for each that is running. What
a request draws depends on its own seed alone: not on what else is in the batch, up to the
rounding of the model's arithmetic, which in float32 moves a log-probability by about 1e-6.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training.exceptions import PolicyError
from training.generation.attention import cached_attention
from training.generation.drawing import draw
from training.generation.slots import SlotCache, common_prefix
from training.types import Generated, Sampling, Stop

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Piece: TypeAlias = NDArray[np.int32]

WORTH_WAITING: Final = 64
"""Tokens of a prompt that a request ahead is about to put into the cache, from which on it is
quicker to wait a moment and copy them."""

NEARLY_ALL: Final = 8
"""A prompt that holds all but so many tokens of a row goes on with that conversation."""


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What the engine may take. `context` None is what the model's configuration says."""

    batch: int = 16
    """Requests that run at once, and rows of the cache."""
    context: int | None = None
    prefill_tokens: int = 2048
    """Prompt tokens, padding included, that go through the model in one pass."""


@dataclass(slots=True, eq=False)
class Request:
    """One generation under way. Made by `Engine.submit`, which alone changes it."""

    prompt: Piece
    sampling: Sampling
    stop_ids: frozenset[int]
    rng: random.Random
    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    stop: Stop | None = None
    """None while it runs."""
    cached: int = 0
    """Tokens of the prompt that the cache already held."""

    @property
    def generated(self) -> Generated:
        """What was sampled. Only once it has stopped."""
        assert self.stop is not None
        return Generated(tuple(self.ids), tuple(self.logprobs), self.stop)


@dataclass(slots=True)
class EngineCounts:
    """What the engine has done since it was made."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Of them, those that no pass had to compute."""
    sampled_tokens: int = 0
    steps: int = 0
    """Decoding passes."""


class Engine:
    """Batched sampling from a transformers model of the Qwen3 kind. For one thread.

    The model has to be in eval mode, and stays as it is: where it is shared with a trainer,
    call `forget` after each change of its weights.
    """

    def __init__(self, model: PreTrainedModel, limits: EngineLimits | None = None) -> None:
        self.model: Any = model
        self.limits = limits or EngineLimits()
        config: Any = model.config
        slides = "sliding_attention" in (getattr(config, "layer_types", None) or ())
        self._window: int | None = config.sliding_window if slides else None
        known = int(config.max_position_embeddings)
        self.context = min(self.limits.context or known, known)
        self.counts = EngineCounts()
        self._cache = SlotCache(self.limits.batch)
        self._running: list[Request] = []
        """In the order of their rows: request i has row i."""
        self._used: list[int] = list(range(self.limits.batch))
        """When the conversation of each row was last gone on with."""
        self._time = 0
        self._waiting: deque[Request] = deque()

    @property
    def busy(self) -> bool:
        """Whether a step has anything to do."""
        return bool(self._running or self._waiting)

    @property
    def load(self) -> int:
        """Requests that run or wait."""
        return len(self._running) + len(self._waiting)

    def submit(self, prompt: Sequence[int], sampling: Sampling, stop_ids: Sequence[int]) -> Request:
        """Take a request. One whose prompt leaves no room stops at once, with `length`."""
        seed = sampling.seed
        request = Request(
            prompt=np.asarray(prompt, dtype=np.int32),
            sampling=sampling,
            stop_ids=frozenset(sampling.stop_ids or stop_ids),
            rng=random.Random(seed) if seed is not None else random.SystemRandom(),  # noqa: S311
        )
        if not len(request.prompt):
            raise PolicyError("a prompt without a token cannot be continued")
        if len(request.prompt) >= self.context or sampling.max_tokens < 1:
            request.stop = Stop.LENGTH
        else:
            self._waiting.append(request)
        return request

    def cancel(self, request: Request) -> None:
        """Let go of a request that nobody waits for any more."""
        if request in self._waiting:
            self._waiting.remove(request)
        elif request in self._running:
            with torch.inference_mode():  # as the cache was made
                self._leave(self._running.index(request))
        request.stop = request.stop or Stop.ERROR

    def cancel_all(self) -> None:
        """Let go of all requests and of the cache: after a failure nothing in it is sure."""
        for request in (*self._waiting, *self._running):
            request.stop = request.stop or Stop.ERROR
        self._waiting.clear()
        self._running.clear()
        self._cache.release()

    def forget(self) -> None:
        """Drop what is cached, after the weights have changed. Raises PolicyError while busy."""
        if self.busy:
            raise PolicyError("weights cannot change while a generation runs")
        self._cache.forget()

    def step(self) -> list[Request]:
        """Let in what waits and decode one token of each; the requests that have stopped.

        Raises PolicyError when the model is not in eval mode (dropout would be sampled
        from) and when its logits are no numbers.
        """
        if self.model.training:
            raise PolicyError("the model is in training mode: generation needs eval()")
        stopped: list[Request] = []
        with torch.inference_mode(), cached_attention(self.model):
            while self._waiting and len(self._running) < self.limits.batch:
                stopped += self._let_in()
            if self._running:
                pieces = [np.asarray([request.ids[-1]], np.int32) for request in self._running]
                stopped += self._pass(0, pieces)
                self.counts.steps += 1
        return stopped

    def _let_in(self) -> list[Request]:
        """Bring the next waiting requests into the batch, with their first token drawn."""
        first = len(self._running)
        pieces: list[Piece] = []
        while self._waiting and len(self._running) < self.limits.batch:
            request = self._waiting[0]
            if pieces and not self._fits(pieces, request, first):
                break
            self._waiting.popleft()
            pieces.append(self._place(request))
        limit = self.limits.prefill_tokens
        if len(pieces) == 1:
            # A long prompt goes in piece by piece: that bounds what a pass needs.
            while len(pieces[0]) > limit:
                self._forward(first, [pieces[0][:limit]])
                pieces = [pieces[0][limit:]]
        return self._pass(first, pieces)

    def _fits(self, pieces: Sequence[Piece], request: Request, first: int) -> bool:
        """Whether a request goes well into the same pass as the ones before it."""
        prompt = request.prompt
        _, held = self._cache.longest_prefix(prompt)
        coming = max(common_prefix(other.prompt, prompt) for other in self._running[first:])
        if coming - held >= WORTH_WAITING:
            return False
        lengths = [*map(len, pieces), len(prompt) - min(held, len(prompt) - 1)]
        padded = max(lengths) * len(lengths)
        return padded <= self.limits.prefill_tokens and padded * 4 <= sum(lengths) * 5

    def _place(self, request: Request) -> Piece:
        """Give a request the next row, with what of its prompt is cached; the rest of it."""
        row, prompt = len(self._running), request.prompt
        source, held = self._cache.longest_prefix(prompt)
        # The last token has to pass again: its logits are not kept.
        held = min(held, len(prompt) - 1)
        goes_on = source >= row and self._cache.length(source) - held <= NEARLY_ALL
        if not goes_on:
            # Another conversation's beginning: copied, so that it can still go on itself.
            oldest = min(range(row, self.limits.batch), key=lambda r: self._used[r])
            if oldest != source and held:
                self._cache.copy_prefix(source, oldest, held)
            source = oldest
        self._swap(source, row)
        self._cache.copy_prefix(row, row, held)
        self._running.append(request)
        self._touch(row)
        request.cached = held
        self.counts.prompt_tokens += len(prompt)
        self.counts.cached_tokens += held
        return prompt[held:]

    def _pass(self, first: int, pieces: Sequence[Piece]) -> list[Request]:
        """One pass over the rows from `first` on, and a token drawn for each."""
        requests = self._running[first : first + len(pieces)]
        logits = self._forward(first, pieces)
        device = logits.device
        temperature = torch.tensor([r.sampling.temperature for r in requests], device=device)
        top_p = torch.tensor([r.sampling.top_p for r in requests], device=device)
        numbers = [r.rng.random() for r in requests]
        uniform = torch.tensor(numbers, device=device, dtype=torch.float64)
        drawn = draw(logits, temperature, top_p, uniform)
        for request, token, logprob in zip(
            requests, drawn.ids.tolist(), drawn.logprobs.tolist(), strict=True
        ):
            if not math.isfinite(logprob):
                raise PolicyError("the model's logits are no numbers: its weights are broken")
            self._take(request, token, logprob)
        self.counts.sampled_tokens += len(requests)
        return self._leave_stopped(requests)

    def _take(self, request: Request, token: int, logprob: float) -> None:
        request.ids.append(token)
        request.logprobs.append(logprob)
        if token in request.stop_ids:
            request.stop = Stop.END
        elif (
            len(request.ids) >= request.sampling.max_tokens
            or len(request.prompt) + len(request.ids) >= self.context
        ):
            request.stop = Stop.LENGTH

    def _leave_stopped(self, requests: Sequence[Request]) -> list[Request]:
        stopped = [request for request in requests if request.stop is not None]
        for request in stopped:
            self._leave(self._running.index(request))
        return stopped

    def _leave(self, row: int) -> None:
        """End the request of a row; the last running one takes its place, it stays warm."""
        last = len(self._running) - 1
        self._swap(row, last)
        self._touch(last)
        self._running[row] = self._running[last]
        self._running.pop()

    def _swap(self, a: int, b: int) -> None:
        self._cache.swap(a, b)
        self._used[a], self._used[b] = self._used[b], self._used[a]

    def _touch(self, row: int) -> None:
        self._time += 1
        self._used[row] = self._time

    def _forward(self, first: int, pieces: Sequence[Piece]) -> Tensor:
        """The logits behind the last token of each piece: (pieces, vocabulary)."""
        device: torch.device = self.model.device
        width = self._cache.look_at(first, pieces, device)
        ids = np.zeros((len(pieces), width), dtype=np.int64)
        for row, piece in enumerate(pieces):
            ids[row, : len(piece)] = piece
        ends = sorted({len(piece) - 1 for piece in pieces})
        answer = self.model(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask={
                "full_attention": self._cache.mask(),
                "sliding_attention": self._cache.mask(self._window),
            },
            position_ids=self._cache.places,
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=torch.tensor(ends, device=device),
        )
        kept = torch.tensor([ends.index(len(piece) - 1) for piece in pieces], device=device)
        logits: Tensor = answer.logits[torch.arange(len(pieces), device=device), kept]
        return logits
