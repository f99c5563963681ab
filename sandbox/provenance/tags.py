"""The text form of a turn: `<think>`, `<tool_call>`, `<obs>` and `<response>` blocks.

A tolerant reader: models forget to close tags, are stopped before the closing one,
wrap JSON in code fences, or start inside a think block that the chat template
opened. Linear in the text, never raises on text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal, TypeAlias, cast

from scoring.types import Json, JsonObject

BlockKind: TypeAlias = Literal["text", "think", "tool_call", "obs", "response"]

MAX_CALLS_PER_BLOCK = 1000
"""Calls read from one block; a model cannot write more within its token limit by far."""

MAX_TAGS = 50_000
"""Tags read from one text; what follows is plain text. A history within any limit has fewer."""

MAX_ENCODINGS = 2
"""How often arguments may be JSON text inside JSON text: models escape once too often."""

_TAG = re.compile(r"<(/?)(think|tool_call|obs|response)\s{0,4}>")
_FENCE_OPENS = re.compile(r"```[A-Za-z]{0,12}")
_BETWEEN_VALUES = re.compile(r"[\s,;]*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Block:
    """One stretch of a text. `body` is without its tags; text between blocks is kind `text`."""

    kind: BlockKind
    body: str
    closed: bool = True


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as somebody wrote it down. `arguments` is None when they cannot be read;
    `written` is what stands in their place, read or not."""

    name: str
    arguments: JsonObject | None
    written: Json = field(default=None, compare=False)


def read_blocks(text: str) -> list[Block]:
    """Split `text` into blocks, in order; all of it but the tags stands in some body.

    A block ends at its closing tag; other tags inside it are its text. When the next
    tag of its kind opens again, or none follows, it was never closed, and ends where
    any other block begins. Text before a lone first `</think>` is a think block.
    """
    tags = list(islice(_TAG.finditer(text), MAX_TAGS))
    closes = _closing_tags(tags)
    blocks: list[Block] = []
    at = 0
    i = 0
    while i < len(tags):
        tag = tags[i]
        kind = cast("BlockKind", tag[2])
        if tag[1]:
            first = kind == "think" and at == 0
            _append(blocks, "think" if first else "text", text[at : tag.start()])
            at, i = tag.end(), i + 1
            continue
        _append(blocks, "text", text[at : tag.start()])
        closing = closes[i]
        end = closing if closing is not None else _next_opening(tags, i)
        stop = tags[end].start() if end < len(tags) else len(text)
        blocks.append(Block(kind, text[tag.end() : stop], closing is not None))
        if closing is not None:
            at, i = tags[closing].end(), closing + 1
        else:
            at, i = stop, end
    _append(blocks, "text", text[at:])
    return blocks


def read_tool_calls(body: str) -> list[WrittenCall]:
    """The calls in the body of a tool_call block: an object, a list, or several in a row.

    Arguments stand under `parameters` or `arguments`, as an object or as its JSON
    text; the OpenAI form `{"function": {...}}` is read as well. What is not JSON, or
    has no name, is no call.
    """
    calls: list[WrittenCall] = []
    for value in _json_values(_unfenced(body)):
        items = value if isinstance(value, list) else [value]
        for item in items:
            call = read_call(item)
            if call is not None:
                calls.append(call)
            if len(calls) >= MAX_CALLS_PER_BLOCK:
                return calls
    return calls


def read_call(item: Json) -> WrittenCall | None:
    """One call written as an object, or None when it has no name."""
    if not isinstance(item, dict):
        return None
    function = item.get("function")
    if isinstance(function, dict) and "name" not in item:
        item = function
    name = item.get("name")
    if not isinstance(name, str) or not name.strip():
        return None
    arguments = item.get("parameters")
    if arguments is None:
        arguments = item.get("arguments")
    return WrittenCall(name.strip(), read_arguments(arguments), arguments)


def read_arguments(arguments: Json) -> JsonObject | None:
    """Arguments as an object: given as one, as its JSON text (also encoded twice), or left out."""
    for _ in range(MAX_ENCODINGS):
        if not isinstance(arguments, str):
            break
        if not arguments.strip():
            return {}
        arguments = read_json(arguments)
        if arguments is None:
            return None
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else None


def read_json(text: str) -> Json:
    """The JSON value that `text` is, or None: broken, too deep, or numbers too long."""
    try:
        return cast("Json", _DECODER.decode(text.strip()))
    except (ValueError, RecursionError):
        return None


def message_text(content: object) -> str:
    """The text of a chat message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (p.get("text") for p in content if isinstance(p, dict))
        return "\n".join(p for p in parts if isinstance(p, str))
    return ""


def _unfenced(body: str) -> str:
    body = body.strip()
    fence = _FENCE_OPENS.match(body)
    return body[fence.end() :].removesuffix("```") if fence else body


def _append(blocks: list[Block], kind: BlockKind, body: str) -> None:
    if body:
        blocks.append(Block(kind, body))


def _closing_tags(tags: list[re.Match[str]]) -> list[int | None]:
    """For each opening tag, the index of the tag that closes it."""
    closes: list[int | None] = [None] * len(tags)
    next_of_kind: dict[str, int] = {}
    for i in range(len(tags) - 1, -1, -1):
        following = next_of_kind.get(tags[i][2])
        if not tags[i][1] and following is not None and tags[following][1]:
            closes[i] = following
        next_of_kind[tags[i][2]] = i
    return closes


def _next_opening(tags: list[re.Match[str]], i: int) -> int:
    for j in range(i + 1, len(tags)):
        if not tags[j][1]:
            return j
    return len(tags)


def _json_values(text: str) -> Iterator[Json]:
    at = 0
    while True:
        gap = _BETWEEN_VALUES.match(text, at)
        at = gap.end() if gap else at
        if at >= len(text) or text[at] not in "{[":
            return
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield cast("Json", value)
