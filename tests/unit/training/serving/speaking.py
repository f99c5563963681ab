"""A small tokenizer, and a policy that says what it is told to say."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from transformers import PreTrainedTokenizerBase

from sandbox.tools.schemas import TOOL_SCHEMAS
from training.render.chat import ChatRenderer
from training.tokenizing.family import wrap
from training.tokenizing.small import train_small
from training.types import Generated, Sampling, Stop

TEXTS = ["red cotton shirt for men, free shipping", '{"q":"red shirt","page":1}', str(TOOL_SCHEMAS)]


@cache
def tokenizer() -> PreTrainedTokenizerBase:
    """Of the Qwen3 family, small, the same each time."""
    return wrap(train_small(TEXTS * 3, 2_000))


@cache
def renderer() -> ChatRenderer:
    return ChatRenderer(tokenizer())


def spoken(text: str) -> tuple[int, ...]:
    """The tokens of a completion that ends its turn."""
    ids = tokenizer().encode(text, add_special_tokens=False)
    return (*ids, tokenizer().convert_tokens_to_ids("<|im_end|>"))


class Scripted:
    """Says its lines in order, whoever asks. Implements `Policy`.

    A line without an end of turn is one that was cut; an exception is raised.
    """

    def __init__(self, *lines: str | Exception, cut: Sequence[int] = ()) -> None:
        self.lines = list(lines)
        self.cut = set(cut)
        self.prompts: list[tuple[int, ...]] = []
        self.samplings: list[Sampling] = []

    async def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[Generated]:
        said = []
        self.samplings.append(sampling)
        for prompt in prompts:
            at = len(self.prompts)
            self.prompts.append(tuple(prompt))
            line = self.lines[at]
            if isinstance(line, Exception):
                raise line
            ids = spoken(line)[: -1 if at in self.cut else None]
            stop = Stop.LENGTH if at in self.cut else Stop.END
            said.append(Generated(ids, tuple(-0.5 for _ in ids), stop))
        return said
