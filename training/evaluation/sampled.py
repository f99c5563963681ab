"""One way of sampling for all agents: what decides pass@k is the evaluation's, not theirs.

An agent sends a temperature of its own, most of them 0, and k samples at temperature 0 are
one. The model client of an evaluation therefore puts its own temperature, top-p and seed into
every request; the seed depends on the sample and the conversation, so that one seed of the
evaluation gives the same samples again, where the server keeps to seeds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sandbox.models import ModelClient, ModelRoute
from sandbox.models.client import Completion
from sandbox.models.request import ChatRequest
from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class SampleSettings:
    """How the samples of a problem are drawn. None leaves to the agent what it asks for."""

    samples: int = 1
    temperature: float | None = None
    top_p: float | None = None
    seed: int = 0
    turn_tokens: int | None = None
    """The most that one answer may have; an agent that asks for fewer gets fewer."""

    def to_json(self) -> JsonObject:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


class SampledModels(ModelClient):
    """The model client of the runs with sample number `sample`."""

    def __init__(self, routes: Iterable[ModelRoute], settings: SampleSettings, sample: int) -> None:
        super().__init__(routes)
        self._settings = settings
        self._sample = sample

    async def complete(
        self,
        request: ChatRequest,
        *,
        models: Sequence[str] = (),
        timeout_s: float = 300.0,
        tries: int | None = None,
    ) -> Completion:
        """As `ModelClient.complete`, sampled as the evaluation says."""
        return await super().complete(
            replace(request, params=self.params(request)),
            models=models,
            timeout_s=timeout_s,
            tries=tries,
        )

    def params(self, request: ChatRequest) -> JsonObject:
        """The parameters that are sent in place of the agent's own."""
        settings = self._settings
        params: JsonObject = dict(request.params)
        if settings.temperature is not None:
            params |= {"temperature": settings.temperature, "seed": self._seed(request)}
        if settings.top_p is not None:
            params["top_p"] = settings.top_p
        if settings.turn_tokens is not None:
            asked = params.get("max_tokens")
            most = settings.turn_tokens
            params["max_tokens"] = min(asked, most) if isinstance(asked, int) else most
        return params

    def _seed(self, request: ChatRequest) -> int:
        told = json.dumps([self._settings.seed, self._sample, list(request.messages)])
        return int.from_bytes(hashlib.sha256(told.encode()).digest()[:4], "big") >> 1
