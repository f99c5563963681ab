"""Tokens as the trainer counts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from corpus_export.exceptions import TokenizerError
from corpus_export.normalise import messages_of
from corpus_export.pretokens import PieceCounter, cuts_like_qwen
from corpus_export.tokens import MARKS, chat_text, estimate_tokens, head_text, open_tokens
from sandbox.tools import TOOL_SCHEMAS
from scoring.types import Json, JsonObject
from tests.unit.corpus_export.builders import GOOD, QUERY, Move, find, trajectory, view
from tests.unit.corpus_export.tokenizers_for_tests import qwen_like

ROW = messages_of(trajectory(*GOOD))
TOKENIZER = Tokenizer.from_buffer(qwen_like())
PIECES = PieceCounter(TOKENIZER)
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cn"))
    | st.sampled_from(" \n\r\t'sSl1_-")
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(qwen_like())
    return path


def encoded(text: str) -> int:
    return len(TOKENIZER.encode(text, add_special_tokens=False))


def test_a_row_is_written_as_the_trainers_template_writes_it() -> None:
    moves = (Move("Both at once.", (find("a", 1), view(1)), "Look."), Move("", (), "Bye."))
    first, second = (json.dumps(c.result) for c in moves[0].calls)
    assert chat_text(messages_of(trajectory(*moves))) == (
        f"<|im_start|>user\n{QUERY}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\nBoth at once.\n</think>\n\nLook.\n"
        '<tool_call>\n{"name": "find_product", "arguments": {"q": "a"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "view_product_information", "arguments": {"product_ids": "1"}}\n'
        "</tool_call><|im_end|>\n"
        f"<|im_start|>user\n<tool_response>\n{first}\n</tool_response>\n"
        f"<tool_response>\n{second}\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\nBye.<|im_end|>\n"
    )


def test_the_system_block_holds_the_system_text_and_the_tools() -> None:
    text = head_text(ROW)
    assert text.startswith(f"<|im_start|>system\n{ROW[0]['content']}\n\n# Tools\n")
    assert all(json.dumps(tool, ensure_ascii=False) in text for tool in TOOL_SCHEMAS)
    assert text.endswith("<|im_end|>\n")


@pytest.mark.parametrize("of_directory", [True, False])
def test_the_count_is_what_the_tokeniser_gives_for_all_of_it(
    file: Path, of_directory: bool
) -> None:
    counter = open_tokens(file.parent if of_directory else file)
    assert counter.count(ROW) == encoded(head_text(ROW) + chat_text(ROW))
    assert counter.exact
    assert counter.name.startswith("tokenizer.json sha256:")


@example("u\u0308ber")
@example("a\x1c\x1c b \x85 c \x1f")
@example("ü\x1d\x1d b")
@example("\ua7ce\ua7cf \ua7ce1\u0558\u0558a")
@example("   \n\n  x  's 'S ’s\u3000\u00a0 y")
@given(st.lists(TEXTS | st.sampled_from(MARKS), max_size=6).map("".join))
def test_counting_by_pieces_gives_what_encoding_gives(text: str) -> None:
    assert PIECES.count(text) == encoded(text)


def test_pieces_are_counted_again_when_too_many_were_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("corpus_export.pretokens.MAX_PIECES", 3)
    text = "one two three four five six one two three"
    assert PieceCounter(TOKENIZER).count(text) == encoded(text)


def changed(*path: str, value: Json) -> bytes:
    whole: JsonObject = json.loads(qwen_like())
    inner: dict[str, Json] = whole
    for key in path[:-1]:
        found = inner[key]
        assert isinstance(found, dict)
        inner = found
    inner[path[-1]] = value
    return json.dumps(whole).encode()


@pytest.mark.parametrize(
    "content",
    [
        changed("normalizer", value=None),
        changed("pre_tokenizer", value={"type": "ByteLevel", "add_prefix_space": False}),
        changed("added_tokens", value=[]),
        b"[]",
    ],
)
def test_a_tokeniser_that_cuts_otherwise_is_told(content: bytes) -> None:
    assert cuts_like_qwen(qwen_like())
    assert not cuts_like_qwen(content)


def test_a_tokeniser_that_cuts_otherwise_encodes(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(changed("normalizer", value=None))
    assert open_tokens(path).count(ROW) == encoded(head_text(ROW) + chat_text(ROW))


@pytest.mark.parametrize("content", [b"{", b"", b'{"a": 1}', None])
def test_what_is_no_tokeniser_is_refused_with_a_remedy(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TokenizerError) as caught:
        open_tokens(path)
    assert caught.value.remedy


def test_a_tokeniser_of_another_family_is_refused(tmp_path: Path) -> None:
    whole = json.loads(qwen_like())
    whole["added_tokens"] = [t for t in whole["added_tokens"] if t["content"] != "<think>"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(TokenizerError, match="<think>"):
        open_tokens(path)


def test_without_a_tokeniser_an_estimate_says_that_it_is_one() -> None:
    counter = open_tokens(None)
    assert not counter.exact
    assert counter.name == "estimate-1"
    assert counter.count(ROW) == estimate_tokens(head_text(ROW) + chat_text(ROW))


@pytest.mark.parametrize(
    ("text", "at_least"),
    [("1234567890", 10), ("商品很好", 4), ('[{"a":"b"}]', 5), ("I look at the blue bag.", 6)],
)
def test_the_estimate_is_on_the_high_side(text: str, at_least: int) -> None:
    assert estimate_tokens(text) >= at_least
