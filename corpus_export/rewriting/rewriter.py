"""Ask a model for the thoughts of a run and keep them only if everything holds.

The paper's largest lever: most strong agents are code that calls tools by itself (axis B);
with reasoning between their real calls, their runs can teach. A row that comes out is
marked as rewritten and names the model. Works with any provider of the model client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from corpus_export.rewriting import prompts
from corpus_export.rewriting.assembly import query_of, skeleton, steps_of, with_thoughts
from corpus_export.rewriting.checks import faults
from judge.verdict import Gate
from sandbox.models import ChatRequest, Completion, ModelClient
from scoring.types import JsonObject

TRIES = 3
"""Answers asked for: the first, and corrections."""
MAX_STEPS = 60
MIN_QUALITY = Gate.COMPARISON.quality
"""What the facts have to bear out: data of results are named."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A row whose thoughts a model wrote. `tries` is how many answers it took."""

    messages: tuple[JsonObject, ...]
    model: str
    tries: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that keeps to axis B, and why; `reasons` hold no text of the model."""

    reasons: tuple[str, ...]
    tries: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Writes the thoughts of rows with one model."""

    client: ModelClient
    model: str
    min_quality: float = MIN_QUALITY
    timeout_s: float = 180.0
    max_tokens: int = 16_384

    async def rewrite(self, messages: Sequence[JsonObject], source: str) -> Rewritten | Refused:
        """The row with reasoning before each step, or why there is none.

        `messages` is a row of axis B in the OpenAI schema, `source` the released source of
        its agent. Raises ModelError when the model's server fails.
        """
        steps = steps_of(messages)
        if not steps or len(steps) > MAX_STEPS:
            return Refused((f"{len(steps)} steps; it takes 1 to {MAX_STEPS}",), 0, 0.0)
        before = skeleton(messages)
        asked = list(prompts.conversation(query_of(messages), steps, source))
        cost = 0.0
        reasons: list[str] = []
        for number in range(1, TRIES + 1):
            completion = await self._ask(asked)
            cost += completion.cost_usd
            try:
                thoughts = prompts.read_thoughts(completion.text, len(steps))
                row = with_thoughts(messages, thoughts)
                reasons = faults(row, self.min_quality)
            except prompts.ThoughtsError as error:
                reasons = [str(error)]
            if not reasons:
                if skeleton(row) != before:
                    return Refused(("a call or an observation changed",), number, cost)
                return Rewritten(tuple(row), self.model, number, cost)
            said: JsonObject = {"role": "assistant", "content": completion.text}
            asked = [*asked[:2], said, prompts.correction(reasons)]
        return Refused(tuple(reasons), TRIES, cost)

    async def _ask(self, messages: Sequence[JsonObject]) -> Completion:
        params: JsonObject = {
            "max_tokens": self.max_tokens,
            "response_format": {
                "type": "json_schema",
                "json_schema": {
                    "name": "thoughts",
                    "strict": True,
                    "schema": prompts.ANSWER_SCHEMA,
                },
            },
        }
        request = ChatRequest(self.model, tuple(messages), params, accept_empty=False)
        return await self.client.complete(request, timeout_s=self.timeout_s)
