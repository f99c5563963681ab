"""A problem of the market, and what a model could say to solve it."""

from __future__ import annotations

import json
from typing import Any

from arena.runs.record import AgentRef
from scoring.types import Bucket, Problem, Reward
from tests.unit.training.serving.speaking import renderer
from training.serving.chat import ChatModel
from training.types import Policy

AGENT = AgentRef("distilled", "tiny", "0" * 64)
PROBLEM = Problem(
    problem_id="p-1",
    query="A green ceramic teapot with lid made of clay",
    bucket=Bucket.PRODUCT,
    rewards=(Reward("12", title=("Ceramic teapot with lid",)),),
)


def call(name: str, **arguments: Any) -> str:
    """A call as a model of the corpus writes it: keys sorted, no spaces."""
    text = json.dumps(arguments, separators=(",", ":"), sort_keys=True)
    return f'<tool_call>\n{{"name": "{name}", "arguments": {text}}}\n</tool_call>'


def turn(thinking: str, *calls: str, text: str = "") -> str:
    """A completion: thinking, text, calls."""
    body = "\n".join([text, *calls] if text else calls)
    return f"<think>\n{thinking}\n</think>\n\n{body}"


SOLUTION = (
    turn("I search for the teapot.", call("find_product", q="ceramic teapot lid")),
    turn(
        "12 may be green; I look at 11 and 12.",
        call("view_product_information", product_ids="11,12"),
    ),
    turn("12 is green and made of clay.", call("recommend_product", product_ids="12")),
    turn("It was taken.", call("terminate", status="success")),
)


def chat(policy: Policy, context: int = 30_000) -> ChatModel:
    return ChatModel("tiny", renderer(), policy, context)
