"""Finds a plan's next move: run again from the start over the answers already given.

A server that keeps nothing between requests is what the wire asks for, and a plan
that is a straight course of steps is what people can read. Running it again joins both.
"""

from __future__ import annotations

import json
from collections import defaultdict

from sandbox.standin.conversation import Conversation
from sandbox.standin.moves import Call, Move, Plan
from scoring.types import Json

MAX_ASKED = 2
"""A call that stayed without an answer so often is given up."""

DONE = Move("The task is done; nothing is left to do.", response="The task is done.")


def next_move(plan: Plan, conversation: Conversation) -> Move:
    """The first move of `plan` that the conversation does not answer yet.

    Of that move only the calls that are open remain. Calls of tools that the request
    does not offer count as unanswerable.
    """
    answers: dict[str, Json] = {}
    asked: dict[str, int] = defaultdict(int)
    for exchange in conversation.exchanges:
        key = _key(exchange.call)
        asked[key] += 1
        if exchange.answered:
            answers[key] = exchange.answer
    offered = conversation.offered

    def is_open(call: Call) -> bool:
        return (
            _key(call) not in answers
            and asked[_key(call)] < MAX_ASKED
            and (offered is None or call.name in offered)
        )

    try:
        move = next(plan)
        while True:
            still_open = tuple(call for call in move.calls if is_open(call))
            if still_open:
                return Move(move.think, still_open, move.response)
            move = plan.send(tuple(answers.get(_key(call)) for call in move.calls))
    except StopIteration:
        return DONE


def _key(call: Call) -> str:
    """The same call always has the same key: numbers may come back as text."""
    arguments = {
        name: value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        for name, value in call.arguments.items()
        if value is not None
    }
    return json.dumps([call.name, arguments], sort_keys=True)
