"""The stand-in writer `standin/rewriter-1`: rules behind the wire of a model.

It is asked like any model, reads the prompt and nothing else, and writes plain thoughts
from the observations that the prompt shows before each step. Importing this module
registers it with the offline server (`python -m sandbox.standin --load
corpus_export.rewriting.standin`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from sandbox.standin.conversation import Conversation
from sandbox.standin.registry import PREFIX, Speech, register

REWRITER = PREFIX + "rewriter-1"
MODULE = __name__
"""What the server loads to host it."""
NOTHING = "There is no run in this conversation, and I write nothing else."

_HEAD = re.compile(r"RUN mark=([0-9a-f]{16}) steps=(\d+)\n")
_PRODUCT = re.compile(r'"product_id": ?"(\d{1,20})"')
_PRICE = re.compile(r'"price": ?(\d+(?:\.\d+)?)')


@dataclass(slots=True)
class _Step:
    calls: str = ""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Product id and price, as this step's observations show them."""
    empty: bool = False
    """Whether its last observation holds nothing."""


def write(conversation: Conversation) -> Speech:
    """The thoughts for the run in the conversation."""
    for text in conversation.users:
        head = _HEAD.match(text)
        if head:
            steps = _steps(text, head[1], int(head[2]))
            return Speech(json.dumps({"thoughts": _thoughts(steps)}, ensure_ascii=False))
    return Speech(NOTHING)


def _steps(text: str, mark: str, count: int) -> list[_Step]:
    steps = [_Step() for _ in range(count)]
    blocks = re.compile(rf"«{mark} step (\d+) (calls|observation)»\n(.*?)\n«/{mark}»", re.DOTALL)
    for number, kind, body in blocks.findall(text):
        step = steps[int(number) - 1]
        if kind == "calls":
            step.calls = body
            continue
        step.empty = body.strip() in ("[]", "{}", "")
        for part in re.split(r'(?="product_id")', body):
            found, price = _PRODUCT.match(part), _PRICE.search(part)
            if found and price:
                step.seen.append((found[1], price[1]))
    return steps


def _thoughts(steps: list[_Step]) -> list[str]:
    thoughts: list[str] = []
    seen: dict[str, str] = {}
    for number, step in enumerate(steps):
        thoughts.append(_thought(step, seen, after=steps[number - 1] if number else None))
        seen.update(step.seen)
    return thoughts


def _thought(step: _Step, seen: dict[str, str], after: _Step | None) -> str:
    if after is None:
        return (
            "Nothing has been searched yet, so a search with the words of the request comes first,"
            " and its results will tell which candidates fit the constraints at all."
        )
    told = "The last search found nothing." if after.empty else ""
    known = sorted(seen.items(), key=lambda item: (float(item[1]), item[0]))
    wanted = [item for item in known if item[0] in step.calls]
    others = [item for item in known if item not in wanted]
    if wanted and others:
        (best, price), (other, more) = wanted[0], others[0]
        return (
            f"{told} Product {best} was found at {price} and product {other} at {more}; I go on"
            f" with {best}, because its data fit the request better than those of {other} do."
        ).strip()
    if len(known) > 1:
        (best, price), (other, more) = known[0], known[-1]
        return (
            f"{told} So far product {best} is listed at {price}, cheaper than product {other} at"
            f" {more}; before I decide I want to know more than these results show."
        ).strip()
    if known:
        return f"{told} Product {known[0][0]} at {known[0][1]} is the only candidate found so far."
    return f"{told} No candidate has been found so far, so the search goes on with other words."


register(REWRITER, write)
