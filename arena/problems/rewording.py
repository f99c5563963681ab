"""A model words synthesised problems anew; what it writes is checked, or refused.

The model is given the words for each wanted product, one by one, and nothing else: no id,
no title, no reward, and neither the frame of the query nor the rules of a voucher, which
the generator words itself. So budget, voucher, number and order of the products stay by
construction, and `rewording_check` holds each item to its own wishes. A refused rewording
leaves the generator's words in place, and is counted by its flaws.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace

from arena.exceptions import RewordingError
from arena.problems.rewording_check import Flaw, Item, flaws
from arena.problems.wording import query_words
from sandbox.exceptions import ModelError
from sandbox.models import ModelClient, ModelSettings, discover
from sandbox.models.request import ChatRequest
from sandbox.standin.process import running_standin
from sandbox.standin.registry import PREFIX
from scoring.types import JsonObject, Problem

STANDIN = "stand-in"
STANDIN_MODULE = "arena.problems.rewording_standin"
STANDIN_REWORDER = PREFIX + "reworder-1"

SYSTEM = """\
You reword requests of shoppers. You get a JSON list of items, each the words for one product
that a shopper wants. Answer with nothing but a JSON list of as many texts, in the same order:
each the same wish in other words.
- Keep every number, price bound, size, colour, brand, material and other value exactly as
  written, each with the name of what it is a value of.
- Keep every word of the thing itself, and every service (LazMall, free shipping, cash on
  delivery, LazFlash).
- Change the order, the sentence and the small words. Add no wish, no praise and no doubt.
- One line each, no line breaks, no quotation marks around it, no full stop at the end."""

TRIES = 2
"""Answers asked for one problem; the second time the flaws of the first are told."""
MAX_TOKENS = 1_024
TIMEOUT_S = 90.0
CONCURRENCY = 8


@dataclass(slots=True)
class Tally:
    """What came of the rewordings so far."""

    reworded: int = 0
    refused: int = 0
    """Problems whose every answer was refused."""
    flaws: Counter[str] = field(default_factory=Counter)
    """Answers refused, by what was wrong with them; `answer`: not a list of as many texts."""
    failed: int = 0
    """Problems for which no model answered."""
    cost_usd: float = 0.0

    def to_json(self) -> JsonObject:
        """For `--json`."""
        return {
            "reworded": self.reworded,
            "refused": self.refused,
            "flaws": dict(sorted(self.flaws.items())),
            "failed": self.failed,
            "cost_usd": round(self.cost_usd, 6),
        }


class Reworder:
    """Asks one model. Safe for many tasks of one event loop."""

    def __init__(self, client: ModelClient, model: str, *, temperature: float = 0.8) -> None:
        self.model = model
        self.tally = Tally()
        self._client = client
        self._temperature = temperature
        self._slots = asyncio.Semaphore(CONCURRENCY)

    async def reword(self, problem: Problem, items: Sequence[str]) -> Problem | None:
        """The problem in other words, its id still the old one; None when it must stay.

        `items` are the generator's words for its products, in order. The failure of a model
        is counted, not raised.
        """
        wanted = [Item(words, r) for words, r in zip(items, problem.rewards, strict=True)]
        said: list[str] = []
        for _ in range(TRIES):
            try:
                async with self._slots:
                    answer = await self._ask(items, said)
            except ModelError:
                self.tally.failed += 1
                return None
            texts = _texts(answer, len(wanted))
            said = _wrong(wanted, texts)
            if texts is not None and not said:
                self.tally.reworded += 1
                return _framed(problem, texts)
            self.tally.flaws.update({line.split(" ")[0] for line in said})
        self.tally.refused += 1
        return None

    async def reword_all(
        self, problems: Sequence[tuple[Problem, Sequence[str]]]
    ) -> list[tuple[Problem, str | None]]:
        """Each problem, reworded where that could be, with the model that did it.

        Raises RewordingError when every single call failed: then the model is not there.
        """
        done = await asyncio.gather(*(self.reword(problem, items) for problem, items in problems))
        if problems and self.tally.failed and not (self.tally.reworded or self.tally.refused):
            raise RewordingError(
                f"{self.model} did not answer for any of {self.tally.failed} problems",
                remedy="look at the model server, or grow without --reword-model",
            )
        pairs = zip(problems, done, strict=True)
        return [(new or old, self.model if new else None) for (old, _), new in pairs]

    async def _ask(self, items: Sequence[str], said: Sequence[str]) -> str:
        user = json.dumps(list(items), ensure_ascii=False)
        if said:
            user += "\n\nThe last answer was refused: " + "; ".join(said) + "\nAnswer anew."
        request = ChatRequest(
            self.model,
            ({"role": "system", "content": SYSTEM}, {"role": "user", "content": user}),
            {"temperature": self._temperature, "max_tokens": MAX_TOKENS},
        )
        completion = await self._client.complete(request, timeout_s=TIMEOUT_S)
        self.tally.cost_usd += completion.cost_usd
        return completion.text


@asynccontextmanager
async def open_reworder(model: str, *, load: Sequence[str] = ()) -> AsyncIterator[Reworder]:
    """A reworder with `model` from the operator's table, or a stand-in by its name.

    `load` names modules with further stand-ins. Raises ModelError or RewordingError when
    there is no such model.
    """
    async with AsyncExitStack() as stack:
        if model.startswith(PREFIX):
            modules = (STANDIN_MODULE, *load)
            url = await stack.enter_async_context(running_standin(load=modules))
            routes = list(await discover(url, server=STANDIN, standin=True))
        else:
            settings = ModelSettings()
            routes = list(settings.routes())
            if settings.model_url is not None:
                routes += await discover(settings.model_url, api_key=settings.model_key)
        if model not in {route.model for route in routes}:
            raise RewordingError(
                f"no model server has {model}",
                remedy="ARENA_MODELS or ARENA_MODEL_URL names the servers",
            )
        client = ModelClient(routes)
        stack.push_async_callback(client.close)
        yield Reworder(client, model)


def _texts(answer: str, count: int) -> list[str] | None:
    """The list of texts in an answer, also from within a fence; None when it is none."""
    start, end = answer.find("["), answer.rfind("]")
    try:
        value = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, list) or len(value) != count:
        return None
    texts = [item.strip().rstrip(".") for item in value if isinstance(item, str)]
    return texts if len(texts) == count else None


def _wrong(wanted: Sequence[Item], texts: Sequence[str] | None) -> list[str]:
    """What is wrong with an answer: the flaw's name first, then the item."""
    if texts is None:
        return [f"answer is not a JSON list of {len(wanted)} texts"]
    return [
        f"{flaw} in item {number}"
        for number, (item, text) in enumerate(zip(wanted, texts, strict=True), start=1)
        for flaw in flaws(item, text)
    ]


def _framed(problem: Problem, items: Sequence[str]) -> Problem:
    """The problem with these words for its products, in a frame that follows from its id."""
    rng = random.Random(f"{problem.problem_id}/frame")  # noqa: S311 - no secret
    return replace(problem, query=query_words(problem.bucket, items, problem.voucher, rng))


__all__ = ["STANDIN_REWORDER", "Flaw", "Reworder", "Tally", "open_reworder"]
