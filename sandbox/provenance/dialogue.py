"""What the agent's own dialogue says of tool calls. Untrusted, and read for two things only:

the recommendation, where the gateway saw none, and tools that the miner invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.provenance.calls import RECOMMEND, Call, normalise
from sandbox.provenance.tags import read_call

MAX_STEPS = 10_000
MAX_CALLS = 1000


def last_recommendation(dialogue: Sequence[Any]) -> Call | None:
    """The last `recommend_product` in the dialogue, or None."""
    last: Call | None = None
    for call in dialogue_calls(dialogue):
        if call.name == RECOMMEND:
            last = call
    return last


def dialogue_calls(dialogue: Sequence[Any]) -> Iterator[Call]:
    """All tool calls of the dialogue's last steps, normalised, in order. Never raises."""
    steps = dialogue[-MAX_STEPS:] if isinstance(dialogue, list | tuple) else ()
    for step in steps:
        completion = step.get("completion") if isinstance(step, dict) else None
        message = completion.get("message") if isinstance(completion, dict) else None
        items = message.get("tool_call") if isinstance(message, dict) else None
        for item in items[-MAX_CALLS:] if isinstance(items, list) else ():
            written = read_call(item)
            if written is not None:
                yield normalise(written.name, written.arguments)


def dialogue_query(dialogue: Sequence[Any]) -> str | None:
    """The query as the first step states it, or None."""
    step = dialogue[0] if isinstance(dialogue, list | tuple) and dialogue else None
    extra = step.get("extra_info") if isinstance(step, dict) else None
    query = extra.get("query") if isinstance(extra, dict) else None
    return query if isinstance(query, str) else None
