"""The tag text of SN15 conversations: `<think>`, `<tool_call>`, `<obs>`, `<response>`.

A whole history stands in one text. What tools returned may hold tags of its own, so a
JSON part ends where its JSON ends and not at the first closing tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.standin.moves import Call, Move
from scoring.types import Json

JSON_ROLES = frozenset({"tool_call", "obs"})
_OPEN = re.compile(r"<(user|think|tool_call|obs|response)>\s*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Segment:
    """One tagged part. `value` is its JSON for tool_call and obs, else its text.

    A JSON part that does not parse has its raw text as `value`.
    """

    role: str
    value: Json


def read_segments(text: str) -> list[Segment]:
    """The tagged parts of `text`, in order. What stands between them is left out.

    A part that is not closed reaches to the end. Never raises on any text.
    """
    segments = []
    position = 0
    while opening := _OPEN.search(text, position):
        role, start = opening[1], opening.end()
        closing = f"</{role}>"
        if role in JSON_ROLES:
            decoded = _read_json(text, start)
            if decoded is not None:
                value, end = decoded
                closed = text.find(closing, end)
                if closed >= 0 and not text[end:closed].strip():
                    segments.append(Segment(role, value))
                    position = closed + len(closing)
                    continue
        end = text.find(closing, start)
        position = len(text) if end < 0 else end + len(closing)
        segments.append(Segment(role, text[start : len(text) if end < 0 else end].strip()))
    return segments


def _read_json(text: str, start: int) -> tuple[Json, int] | None:
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def read_calls(value: Json) -> list[Call]:
    """The calls of a tool_call part: an object or a list; `parameters` or `arguments`."""
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            continue
        arguments = entry.get("parameters", entry.get("arguments"))
        calls.append(
            Call(str(entry["name"]), dict(arguments) if isinstance(arguments, dict) else {})
        )
    return calls


def write_move(move: Move) -> str:
    """A move as tag text: think, tool_call, response; empty parts are left out."""
    parts = [f"<think>{_text(move.think)}</think>"]
    if move.calls:
        parts.append(f"<tool_call>{write_calls(move.calls)}</tool_call>")
    if move.response:
        parts.append(f"<response>{_text(move.response)}</response>")
    return "\n".join(parts)


def write_calls(calls: Sequence[Call]) -> str:
    """Calls as a JSON list in which no tag can stand."""
    entries = [{"name": call.name, "parameters": call.arguments} for call in calls]
    return json.dumps(entries, ensure_ascii=False).replace("<", "\\u003c")


def _text(text: str) -> str:
    return text.replace("<", "‹").replace(">", "›")
