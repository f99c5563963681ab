"""A policy of this process as the model client of one rollout.

The gateway asks it as it asks any model server, checks and records what goes by, and this
keeps beside it what no wire carries: the tokens of each turn and their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ChatRequest, Completion, ModelClient, ModelRoute, faults
from sandbox.trace import Usage
from scoring.exceptions import ArenaError
from scoring.types import JsonObject
from training.generation.policy import seed_of
from training.serving.chat import ChatModel
from training.types import Turn

SERVER: Final = "policy"
"""What records of rollouts say answered."""


@dataclass(frozen=True, slots=True)
class TurnSampling:
    """How the turns of a rollout are sampled. The defaults are the paper's for rejection."""

    temperature: float = 0.9
    top_p: float = 0.95
    max_tokens: int = 2048
    """Of one turn."""

    def to_json(self) -> JsonObject:
        """By name."""
        return {name: getattr(self, name) for name in self.__slots__}


class PolicyModels(ModelClient):
    """Answers for one rollout. `seed` gives each of its turns one of its own."""

    def __init__(self, chat: ChatModel, sampling: TurnSampling, seed: int | None) -> None:
        super().__init__([ModelRoute(chat.name, SERVER)])
        self._chat = chat.for_one()
        self._sampling = sampling
        self._seed = seed
        self.turns: list[Turn] = []
        """What was said so far."""
        self.malformed = 0
        """Calls among it that could not be read."""
        self.failure: ArenaError | None = None
        """Why the policy cannot go on, once it cannot."""

    async def complete(
        self,
        request: ChatRequest,
        *,
        models: Sequence[str] = (),
        timeout_s: float = 300.0,
        tries: int | None = None,
    ) -> Completion:
        """The policy's next turn, sampled as the rollout is; it waits its turn in the batch.

        Raises ModelError: AGENT for what does not fit the context, else the policy's failure.
        """
        if self.failure is not None:
            # The gateway asks a small question to find out whose fault it was: nobody's here.
            raise _failed(self.failure)
        params: JsonObject = {
            **request.params,
            **self._sampling.to_json(),
            "seed": seed_of(self._seed, len(self.turns)),
        }
        params = {name: value for name, value in params.items() if value is not None}
        try:
            answered = await self._chat.complete(replace(request, params=params))
        except ModelError:
            raise
        except ArenaError as error:
            self.failure = error
            raise _failed(error) from None
        [said], [parsed] = answered.generated, answered.parsed
        self.turns.append(Turn(answered.prompt_ids, said.ids, said.logprobs, said.stop))
        self.malformed += len(parsed.malformed)
        [route] = self.routes(self._chat.name)
        usage = Usage(len(answered.prompt_ids), len(said.ids))
        return Completion(answered.body, route, usage, 0.0)


def _failed(error: ArenaError) -> ModelError:
    return ModelError(error.message, code=faults.UNAVAILABLE, fault=Fault.VALIDATOR)
