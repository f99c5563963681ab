"""What comes out of a sandbox's standard output, and how much of it is believed.

The agent shares its process with the runner, so every byte here is the agent's. A
frame can blame the agent and nobody else, and a dialogue is taken only after this
module has read it: valid JSON, bounded in size and depth, text that every database
and every other program can hold. Pure.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from sandbox.exceptions import AgentError, ErrorInfo, Fault
from sandbox.isolation import interface
from scoring.types import Json, JsonObject

HEAD_BYTES: Final = 128 << 10
"""The longest line that opens a frame."""

MESSAGE_CHARS: Final = 8000
DEPTH: Final = 64
"""How deeply a dialogue may nest. Real ones stay below 15, and what reads it later recurses."""

VALUES: Final = 1_000_000
"""Commas and opening brackets in a dialogue. Real ones have some ten thousand; sixteen
megabytes of `{},` would fill gigabytes of the validator's memory by the time they are a
record."""

_EXACT_INTEGER: Final = 2**53 - 1
_AGENT_CODES: Final = frozenset(
    {
        interface.AGENT_SYNTAX,
        interface.AGENT_NO_MAIN,
        interface.AGENT_IMPORT,
        interface.AGENT_EXCEPTION,
        interface.AGENT_BAD_RETURN,
        interface.AGENT_EXITED,
        interface.AGENT_ANSWER_TOO_LARGE,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A dialogue as it came, not yet read."""

    body: bytes


class FrameReader:
    """Takes the bytes of standard output in any pieces, and finds the frames in them.

    `ready` is set by the runner before a line of the agent has run, `final` by the
    first answer or error; what follows is dropped.
    """

    def __init__(self, answer_bytes: int) -> None:
        self.ready = False
        self.final: Answer | ErrorInfo | None = None
        self._limit = answer_bytes
        self._buffer = bytearray()
        self._missing: int | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Never raises."""
        if self.final is not None:
            return
        self._buffer += data
        while self.final is None and self._step():
            pass
        if self.final is not None:
            self._buffer.clear()

    def _step(self) -> bool:
        if self._missing is not None:
            if len(self._buffer) < self._missing:
                return False
            self.final = Answer(bytes(self._buffer[: self._missing]))
            return True
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            if len(line) > HEAD_BYTES:
                self.final = _garbled()
            return False
        self._buffer = rest
        self._open(bytes(line))
        return True

    def _open(self, line: bytes) -> None:
        head = _head(line)
        match head.get("frame"):
            case "ready" if not self.ready:
                self.ready = True
            case "answer" if isinstance(size := head.get("bytes"), int) and size >= 0:
                if size > self._limit:
                    self.final = too_large(size, self._limit)
                self._missing = size
            case "error":
                self.final = _agent_error(head)
            case _:
                self.final = _garbled()


def _head(line: bytes) -> JsonObject:
    try:
        value: Json = json.loads(line) if len(line) <= HEAD_BYTES else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _agent_error(head: JsonObject) -> ErrorInfo:
    code, message = head.get("code"), head.get("message")
    if not isinstance(code, str) or code not in _AGENT_CODES or not isinstance(message, str):
        return _garbled()
    return agent_error(code, clean_text(message[:MESSAGE_CHARS]))


def agent_error(code: str, message: str) -> ErrorInfo:
    """An error that is the agent's."""
    return ErrorInfo(code, Fault.AGENT, message)


def too_large(size: int, limit: int) -> ErrorInfo:
    """The error of a dialogue over its limit."""
    return agent_error(
        interface.AGENT_ANSWER_TOO_LARGE, f"the dialogue has {size} bytes, {limit} are allowed"
    )


def _garbled() -> ErrorInfo:
    return agent_error(
        interface.AGENT_BAD_RETURN, "the agent wrote to the channel of its answer by itself"
    )


def clean_text(text: str) -> str:
    """Text that UTF-8 and Postgres can hold: NUL and lone surrogates become U+FFFD."""
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    if text.isascii():
        return text
    return (
        "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text) if _lone(text) else text
    )


def _lone(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def read_dialogue(body: bytes) -> tuple[JsonObject, ...]:
    """The steps in an answer: checked, and with text made harmless to storage.

    Integers beyond 2**53 become the nearest double, as every other reader of JSON has
    them (RFC 8259, section 6). Takes seconds for the largest: not for an event loop.
    Raises AgentError.
    """
    if sum(body.count(mark) for mark in (b",", b"[", b"{")) > VALUES:
        raise AgentError(
            f"the dialogue holds more than {VALUES:,} values",
            code=interface.AGENT_ANSWER_TOO_LARGE,
        )
    try:
        value: Json = json.loads(body.decode("utf-8"), parse_constant=_no_constant)
        if isinstance(value, list):
            steps = [_clean(step, 1) for step in value]
            if all(isinstance(step, dict) for step in steps):
                return cast("tuple[JsonObject, ...]", tuple(steps))
    except (ValueError, RecursionError, OverflowError) as error:
        raise AgentError(
            f"the dialogue is not JSON that can be kept: {clean_text(str(error)[:200])}",
            code=interface.AGENT_BAD_RETURN,
        ) from None
    raise AgentError("the dialogue is not a list of objects", code=interface.AGENT_BAD_RETURN)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _clean(value: Json, depth: int) -> Json:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT_INTEGER else float(value)
    if isinstance(value, float):
        if value - value != 0:  # what a literal like 1e999 is read as
            raise ValueError("a number is too large")
        return value
    if depth > DEPTH:
        raise ValueError(f"it is nested more than {DEPTH} levels deep")
    if isinstance(value, list):
        return [_clean(item, depth + 1) for item in value]
    return {clean_text(key): _clean(item, depth + 1) for key, item in value.items()}
