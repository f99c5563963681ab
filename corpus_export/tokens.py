"""How many tokens a row is for the trainer: Qwen3's chat rendering under its tokeniser.

`chat_text` writes a row as the trainer's renderer does (ChatML, tools in the system block,
thinking in every turn after the query, tool results as `<tool_response>` of a user block),
so that the length gate measures what will be trained on, scaffold and all. With no
tokeniser at hand an estimate on the high side takes its place, and says so by its name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol, cast

from tokenizers import Tokenizer

from corpus_export.exceptions import TokenizerError
from corpus_export.pretokens import PieceCounter, cuts_like_qwen
from sandbox.tools import TOOL_SCHEMAS
from scoring.types import JsonObject

FILE_NAME = "tokenizer.json"
MARKS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
"""What a tokeniser of the Qwen3 family holds as one token each."""

_TOOLS_HEAD = """# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""
_TOOLS_FOOT = """
</tools>

For each function call, return a json object with function name and arguments within \
<tool_call></tool_call> XML tags:
<tool_call>
{"name": <function-name>, "arguments": <args-json-object>}
</tool_call>"""


class TokenCounter(Protocol):
    """Counts the tokens of rows."""

    name: str
    """What counts, for the manifest: a tokeniser's file and hash, or the estimate."""
    exact: bool
    """Whether the trainer will count the same."""

    def count(self, messages: Sequence[JsonObject]) -> int:
        """The tokens of a row's messages, with the tools and the chat's own."""
        ...


def open_tokens(path: Path | None) -> TokenCounter:
    """The counter over the `tokenizer.json` at `path` (the file, or the directory it lies in);
    without one, the estimate. Raises TokenizerError."""
    return EstimatedTokens() if path is None else ExactTokens(path)


class ExactTokens:
    """The trainer's own tokeniser."""

    exact = True

    def __init__(self, path: Path) -> None:
        file = path / FILE_NAME if path.is_dir() else path
        try:
            content = file.read_bytes()
            self._tokenizer = Tokenizer.from_buffer(content)
        except OSError as error:
            raise TokenizerError(
                f"{file}: {error.strerror}", remedy=f"name the trainer's {FILE_NAME}"
            ) from error
        except Exception as error:  # the library raises nothing narrower
            raise TokenizerError(
                f"{file} is no tokeniser: {str(error)[:200]}",
                remedy=f"name the trainer's {FILE_NAME}",
            ) from error
        lacking = [mark for mark in MARKS if self._tokenizer.token_to_id(mark) is None]
        if lacking:
            raise TokenizerError(
                f"{file} has no token {lacking[0]}: it is not of the Qwen3 family",
                remedy="a corpus is rendered as Qwen3's chat; name the tokeniser that is trained",
            )
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"{FILE_NAME} sha256:{hashlib.sha256(content).hexdigest()}"
        self._pieces = PieceCounter(self._tokenizer) if cuts_like_qwen(content) else None
        # The system block is the same in every row.
        self._of_head = lru_cache(maxsize=16)(self._of_text)

    def count(self, messages: Sequence[JsonObject]) -> int:
        """The tokens of a row's messages, with the tools and the chat's own."""
        return self._of_head(head_text(messages)) + self._of_text(chat_text(messages))

    def _of_text(self, text: str) -> int:
        if self._pieces is not None:
            return self._pieces.count(text)
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return len(encoding)


class EstimatedTokens:
    """Without a tokeniser: an estimate on the high side.

    Qwen's tokeniser writes every digit as a token of its own, which makes catalogue data
    dense. Calibrated on recorded runs; see docs/corpus.md for how far it lies above.
    """

    exact = False
    name = "estimate-1"

    def count(self, messages: Sequence[JsonObject]) -> int:
        """The tokens of a row's messages, with the tools and the chat's own."""
        return estimate_tokens(head_text(messages) + chat_text(messages))


def estimate_tokens(text: str) -> int:
    """Tokens of a text, on the high side: one a digit, one for two marks, one for four letters
    and one for each byte of other scripts."""
    data = text.encode("utf-8", "replace")
    plain = data.translate(None, _BEYOND_ASCII)
    no_digits = plain.translate(None, _DIGITS)
    letters = len(no_digits.translate(None, _NO_LETTERS))
    marks = len(no_digits) - letters
    return (len(data) - len(plain)) + (len(plain) - len(no_digits)) + marks // 2 + letters // 4 + 1


_DIGITS = b"0123456789"
_BEYOND_ASCII = bytes(range(128, 256))
_NO_LETTERS = bytes(b for b in range(128) if not (chr(b).isalpha() or chr(b) == " "))


def head_text(messages: Sequence[JsonObject]) -> str:
    """The system block of a row, with the tools."""
    first = messages[0] if messages else {}
    system = f"{first.get('content')}\n\n" if first.get("role") == "system" else ""
    return f"<|im_start|>system\n{system}{_tools_text()}<|im_end|>\n"


def chat_text(messages: Sequence[JsonObject]) -> str:
    """All of a row after its system block, as Qwen3's template writes it."""
    parts: list[str] = []
    previous = ""
    start = 1 if messages and messages[0].get("role") == "system" else 0
    for place in range(start, len(messages)):
        message = messages[place]
        role = str(message.get("role"))
        if role == "tool":
            last = place + 1 == len(messages) or messages[place + 1].get("role") != "tool"
            parts.append("" if previous == "tool" else "<|im_start|>user")
            parts.append(f"\n<tool_response>\n{message.get('content')}\n</tool_response>")
            parts.append("<|im_end|>\n" if last else "")
        elif role == "assistant":
            ends = place + 1 == len(messages)
            parts.append(f"<|im_start|>assistant\n{_assistant_text(message, ends)}<|im_end|>\n")
        else:
            parts.append(f"<|im_start|>{role}\n{message.get('content')}<|im_end|>\n")
        previous = role
    return "".join(parts)


def _assistant_text(message: JsonObject, ends: bool) -> str:
    content = str(message.get("content") or "")
    reasoning = str(message.get("reasoning_content") or "")
    calls = cast("list[dict[str, dict[str, str]]]", message.get("tool_calls") or [])
    text = content
    if reasoning or ends:
        text = "<think>\n" + reasoning.strip("\n") + "\n</think>\n\n" + content.lstrip("\n")
    for number, call in enumerate(calls):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        gap = "\n" if number or content else ""
        written = f'{{"name": "{name}", "arguments": {arguments}}}'
        text += f"{gap}<tool_call>\n{written}\n</tool_call>"
    return text


@lru_cache(maxsize=1)
def _tools_text() -> str:
    schemas = "".join("\n" + json.dumps(tool, ensure_ascii=False) for tool in TOOL_SCHEMAS)
    return _TOOLS_HEAD + schemas + _TOOLS_FOOT
