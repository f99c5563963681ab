"""The engine as a `Policy`: many tasks ask at once, one thread computes.

All that changes the engine happens on the event loop and between its steps (but for taking
a request, which only puts it into a queue), so that nothing needs a lock. While nobody
asks, nothing runs.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from training.exceptions import ArenaError, PolicyError
from training.generation.engine import Engine, Request
from training.types import Generated, Sampling


class EnginePolicy:
    """Generates for many tasks of one event loop at a time. Implements `Policy`.

    `stop_ids` end a generation where its sampling names none. `version` counts changes of
    the weights, so that rollouts can say which policy made them.
    """

    def __init__(self, engine: Engine, stop_ids: Sequence[int], *, version: int = 0) -> None:
        self.engine = engine
        self.stop_ids = tuple(stop_ids)
        self.version = version
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="generation")
        self._waiting: dict[Request, asyncio.Future[None]] = {}
        self._given_up: list[Request] = []
        self._driver: asyncio.Task[None] | None = None
        self._pause: asyncio.Future[None] | None = None
        """There while the weights change: nobody is let in until it is done."""

    @property
    def context(self) -> int:
        """Tokens of prompt and completion together, at most."""
        return self.engine.context

    async def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[Generated]:
        """One generation for each prompt. With a seed, the i-th has one of its own (`seed_of`).

        Raises PolicyError when the model fails; then all that ran with it has failed too.
        """
        await self._admitted()
        requests = [
            self.engine.submit(prompt, replace(sampling, seed=seed_of(sampling.seed, i)),
                               self.stop_ids)
            for i, prompt in enumerate(prompts)
        ]  # fmt: skip
        loop = asyncio.get_running_loop()
        futures = []
        for request in requests:
            if request.stop is None:
                future = self._waiting[request] = loop.create_future()
                futures.append(future)
        if self._driver is None or self._driver.done():
            self._driver = loop.create_task(self._drive())
        try:
            await asyncio.gather(*futures)
        finally:
            # Where it was given up, what has not stopped is let go of after the step.
            given_up = [request for request in requests if self._waiting.pop(request, None)]
            self._given_up += given_up
        return [request.generated for request in requests]

    async def load_state(self, state: Mapping[str, Tensor], *, version: int | None = None) -> int:
        """Take other weights, once what runs has ended; the version they have from now on.

        `state` has to hold every parameter of the model, by its name. Raises PolicyError
        when it does not, and then nothing has changed.
        """
        async with self._paused():
            await self._in_thread(lambda: _load(self.engine.model, state))
            return self._changed(version)

    async def refresh(self, *, version: int | None = None) -> int:
        """Say that the model's own weights have changed, where it is a trainer's too."""
        async with self._paused():
            return self._changed(version)

    async def close(self) -> None:
        """Let go of everything. What still runs fails."""
        if self._driver is not None and not self._driver.done():
            self._driver.cancel()
            await asyncio.gather(self._driver, return_exceptions=True)
        self._fail(PolicyError("the policy was closed"))
        await asyncio.to_thread(self._thread.shutdown)

    def _changed(self, version: int | None) -> int:
        self.engine.forget()
        self.version = self.version + 1 if version is None else version
        return self.version

    async def _admitted(self) -> None:
        while self._pause is not None:
            await asyncio.wait({self._pause})

    @asynccontextmanager
    async def _paused(self) -> AsyncIterator[None]:
        """Nobody is let in while it lasts, and it begins when nothing runs."""
        await self._admitted()
        self._pause = asyncio.get_running_loop().create_future()
        try:
            while self._driver is not None and not self._driver.done():
                await asyncio.wait({self._driver})
            yield
        finally:
            self._pause.set_result(None)
            self._pause = None

    async def _drive(self) -> None:
        """Step until nothing is left to do."""
        while True:
            try:
                while self._given_up:
                    self.engine.cancel(self._given_up.pop())
                if not self.engine.busy:
                    return
                stopped = await self._in_thread(self.engine.step)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever a model does, those who wait hear of it
                self._fail(_told(error))
                continue
            for request in stopped:
                future = self._waiting.pop(request, None)
                if future is not None and not future.done():
                    future.set_result(None)

    def _fail(self, error: ArenaError) -> None:
        self.engine.cancel_all()
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)

    async def _in_thread(self, work: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def seed_of(seed: int | None, *place: int | str) -> int | None:
    """A seed of its own for one of many, from theirs; None stays None."""
    if seed is None:
        return None
    text = "/".join(map(str, (seed, *place)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _told(error: Exception) -> ArenaError:
    if isinstance(error, ArenaError):
        return error
    remedy = None
    if isinstance(error, torch.OutOfMemoryError):
        remedy = "let fewer run at once, or serve a shorter context"
    said = " ".join(str(error).split())[:300]
    return PolicyError(f"the model failed: {type(error).__name__}: {said}", remedy=remedy)


def _load(model: Any, state: Mapping[str, Tensor]) -> None:
    """Copy `state` into the model's parameters. Raises PolicyError before anything changes."""
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    missing = [name for name in parameters if name not in state]
    unknown = [name for name in state if name not in parameters]
    other = [
        name
        for name, parameter in parameters.items()
        if name in state and state[name].shape != parameter.shape
    ]
    for names, what in ((missing, "lacks"), (other, "has another shape for")):
        if names:
            raise PolicyError(f"a state that {what} {names[0]} ({len(names)} in all)")
    known = {name for name, _ in model.named_buffers()} | set(model.state_dict())
    strange = [name for name in unknown if name not in known]
    if strange:
        raise PolicyError(f"a state with {strange[0]}, which the model has not")
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(state[name])
