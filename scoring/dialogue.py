"""Reading of what an agent returned and did: steps, calls, recommendations.

The dialogue is untrusted. Every function here is total: any JSON value, however
malformed, large or deep, gives an answer and never an exception. Part of scoring: no I/O.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, TypeAlias

RECOMMEND = "recommend_product"
TERMINATE = "terminate"

MAX_IDS = 1000
"""Distinct ids that are read of one recommendation; more can only be a mistake."""
MAX_ID_LENGTH = 256
"""Longer pieces are cut and marked: they can be no product's id, and records hold them."""

_CLOSING = (RECOMMEND, TERMINATE)
# Made once: `isinstance(x, list | tuple)` builds its union on every call.
_NUMBERS = (int, float)
_LISTS = (list, tuple)
_NESTED = (dict, list, tuple)
_NOTHING: dict[str, object] = {}
_TAG = re.compile("</?(?:think|tool_call|response)>")
_PIECE = re.compile("[^,]*(?:,|$)")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """One `recommend_product` call: the ids, in the order asked, without repetitions.

    `as_text` says that they came as one comma list. Numbers and lists of ids are taken by
    the tool, but count for nothing in a dialogue (upstream).
    """

    ids: tuple[str, ...]
    as_text: bool = True


@dataclass(frozen=True, slots=True)
class Termination:
    """One `terminate` call."""

    success: bool


Action: TypeAlias = Recommendation | Termination
"""A call that decides the run."""


class Step(NamedTuple):
    """One step of a dialogue, as far as rules look at it.

    A named tuple, since it is made for every step of every run: a third of the cost.

    `well_formed` is upstream's format rule; `timed` says that the step carries a
    positive timestamp.
    """

    actions: tuple[Action, ...]
    terminates: bool
    well_formed: bool
    timed: bool


def read_steps(dialogue: object) -> tuple[Step, ...]:
    """The steps of a dialogue. Anything but a list has none; a broken step is an empty one."""
    if not isinstance(dialogue, _LISTS):
        return ()
    return tuple(_step(item) for item in dialogue)


def read_recommendation(product_ids: object) -> Recommendation:
    """Read the argument of `recommend_product`.

    Split on commas, stripped, repetitions dropped in order (upstream). An empty piece
    keeps its place, since position i answers reward i, but not at the end.
    """
    if isinstance(product_ids, str):
        return Recommendation(_distinct(product_ids))
    items = product_ids if isinstance(product_ids, _LISTS) else [product_ids]
    plain = [_plain_id(item) for item in items[: MAX_IDS + 1]]
    text = "" if None in plain else ",".join(str(item) for item in plain)
    return Recommendation(_distinct(text), as_text=False)


def _distinct(text: str) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for match in _PIECE.finditer(text):
        found[_identifier(match.group().rstrip(","))] = None
        if len(found) >= MAX_IDS or match.end() == len(text):
            break
    # Repetitions are gone, so at most one empty piece stands at the end.
    ids = list(found)
    if ids and not ids[-1]:
        ids.pop()
    return tuple(ids)


def _plain_id(item: object) -> str | None:
    if isinstance(item, str):
        return item
    small = isinstance(item, int) and not isinstance(item, bool) and abs(item) < 10**18
    return str(item) if small else None


def read_termination(status: object) -> Termination:
    """Read the argument of `terminate`: exactly `success`, or absent, which means it."""
    return Termination(status is None or (isinstance(status, str) and status == "success"))


def action_of(name: object, arguments: object) -> Action | None:
    """The deciding action that a tool call is, or None for any other call."""
    if name not in _CLOSING or not isinstance(name, str):
        return None
    fields: Mapping[object, object] = arguments if isinstance(arguments, Mapping) else {}
    if name == RECOMMEND:
        return read_recommendation(fields.get("product_ids"))
    return read_termination(fields.get("status"))


def _identifier(piece: str) -> str:
    text = piece.strip()
    if len(text) > MAX_ID_LENGTH:
        text = text[:MAX_ID_LENGTH] + "…"
    if text.isascii() and "\0" not in text:
        return text
    # Records are UTF-8 and stored in Postgres: no lone surrogates, no NUL.
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")


def _step(value: object) -> Step:
    # The hottest function of the room: every step of every run comes through here.
    step = value if isinstance(value, dict) else _NOTHING
    completion, extra = step.get("completion"), step.get("extra_info")
    message = completion.get("message") if isinstance(completion, dict) else None
    fields = message if isinstance(message, dict) else _NOTHING
    calls = fields.get("tool_call")
    actions: list[Action] = []
    for call in calls if isinstance(calls, _LISTS) else ():
        if isinstance(call, dict) and call.get("name") in _CLOSING:
            action = action_of(call["name"], call.get("parameters"))
            if action is not None:
                actions.append(action)
    return Step(
        actions=tuple(actions),
        terminates=any(isinstance(action, Termination) for action in actions) if actions else False,
        well_formed=_well_formed(fields.get("think"), calls, fields.get("response")),
        timed=isinstance(extra, dict) and _positive(extra.get("timestamp")),
    )


def _positive(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, _NUMBERS):
        return False
    return value > 0 and not (isinstance(value, float) and math.isinf(value))


def _well_formed(think: object, calls: object, response: object) -> bool:
    """Upstream's format rule on the text form of a step.

    The text is the present roles, each in one pair of tags, in a fixed order; so it is
    well formed exactly when think is there, a call or a response is there, the calls are
    a list of {name: text, parameters: object}, and no role's own text holds a tag.
    Tool results are not the agent's words and are not looked at.
    """
    if not isinstance(think, str) or not think or not (calls or response):
        return False
    if response is not None and not isinstance(response, str):
        return False
    if _tagged(think) or (response and _tagged(response)):
        return False
    if calls is None:
        return True
    if not isinstance(calls, _LISTS):
        return False
    return all(map(_call_well_formed, calls))


def _call_well_formed(call: object) -> bool:
    if not isinstance(call, dict):
        return False
    name, parameters = call.get("name"), call.get("parameters")
    if not isinstance(name, str) or not isinstance(parameters, dict) or _tagged(name):
        return False
    return not _tagged_anywhere(parameters)


def _tagged(text: str) -> bool:
    return "<" in text and _TAG.search(text) is not None


def _tagged_anywhere(parameters: dict[object, object]) -> bool:
    """Whether a text in the arguments of a call, or a key, holds a tag.

    Without recursion: the depth is the agent's choice.
    """
    waiting: list[object] = []
    for item in chain(parameters, parameters.values()):
        if isinstance(item, str):
            if "<" in item and _TAG.search(item):
                return True
        elif isinstance(item, _NESTED):
            waiting.append(item)
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            if _tagged(item):
                return True
        elif isinstance(item, dict):
            waiting += item
            waiting += item.values()
        elif isinstance(item, _LISTS):
            waiting += item
    return False


def deciding(steps: Iterable[Step]) -> tuple[tuple[int, Action], ...]:
    """The deciding actions of a dialogue with the number of their step, in order."""
    return tuple((i, action) for i, step in enumerate(steps) for action in step.actions)
