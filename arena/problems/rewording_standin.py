"""The stand-in reworder `standin/reworder-1`: rules behind the wire of a model.

It turns the clauses of each item round and words its price and services in another way.
Importing this module registers it with the offline server.
"""

from __future__ import annotations

import json
import re

from sandbox.standin.conversation import Conversation
from sandbox.standin.registry import PREFIX, Speech, register
from scoring.types import Json

REWORDER = PREFIX + "reworder-1"
NOTHING = "There is no JSON list of items here."

_OTHERS = (
    (re.compile(r"\bpriced above\b"), "costing more than"),
    (re.compile(r"\bcosting more than\b"), "priced over"),
    (re.compile(r"\bpriced below\b"), "costing less than"),
    (re.compile(r"\bcosting less than\b"), "priced under"),
    (re.compile(r"\bpriced from (\d+) to (\d+)\b"), r"costing between \1 and \2"),
    (re.compile(r"\bwith free shipping\b"), "that comes with free delivery"),
    (re.compile(r"\bwith cash on delivery\b"), "offering cash on delivery"),
)
_CLAUSE = re.compile(r",\s+(?:and\s+)?")


def reword(conversation: Conversation) -> Speech:
    """The items of the last message, each in other words."""
    text = conversation.last_user
    try:
        items, _ = json.JSONDecoder().raw_decode(text[text.index("[") :])
    except ValueError:
        return Speech(NOTHING)
    if not isinstance(items, list):
        return Speech(NOTHING)
    reworded: list[Json] = [_other_words(str(item)) for item in items]
    return Speech(json.dumps(reworded, ensure_ascii=False))


def _other_words(item: str) -> str:
    thing, *clauses = _CLAUSE.split(item)
    for number, clause in enumerate(clauses):
        for pattern, other in _OTHERS:
            if pattern.search(clause):
                clauses[number] = pattern.sub(other, clause)
                break
    return ", ".join((thing, *reversed(clauses)))


register(REWORDER, reword)
