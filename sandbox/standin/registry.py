"""The models that the stand-in server hosts, by name.

A name says that no model of the kind people mean stands behind it: it begins with
`standin/`. Other rooms register theirs, a judge for one, with `register`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox.standin.conversation import Conversation
from sandbox.standin.moves import Move, Plan
from sandbox.standin.narrator import narrate
from sandbox.standin.novice import novice_plan
from sandbox.standin.replay import next_move
from sandbox.standin.shopper import shopper_plan

PREFIX = "standin/"
SHOPPER = PREFIX + "shopper-1"
NOVICE = PREFIX + "novice-1"
NARRATOR = PREFIX + "narrator-1"


@dataclass(frozen=True, slots=True)
class Speech:
    """A plain answer, without tools."""

    text: str


Respond = Callable[[Conversation], "Move | Speech"]
"""A rule-based model: a pure function of the conversation."""

_MODELS: dict[str, Respond] = {}


def register(name: str, respond: Respond) -> None:
    """Host `respond` under `name`. Raises ValueError for a name that hides what it is."""
    if not name.startswith(PREFIX):
        raise ValueError(f"a stand-in's name begins with {PREFIX!r}, not {name!r}")
    _MODELS[name] = respond


def models() -> dict[str, Respond]:
    """All hosted models by name."""
    return dict(_MODELS)


def _shopping(plan: Callable[[str], Plan]) -> Respond:
    """A model that shops by `plan`; asked for neither tools nor tags, it only talks."""

    def respond(conversation: Conversation) -> Move | Speech:
        if conversation.offered is None and not conversation.speaks_tags:
            return Speech(narrate(conversation))
        return next_move(plan(conversation.query), conversation)

    return respond


register(SHOPPER, _shopping(shopper_plan))
register(NOVICE, _shopping(novice_plan))
register(NARRATOR, lambda conversation: Speech(narrate(conversation)))
