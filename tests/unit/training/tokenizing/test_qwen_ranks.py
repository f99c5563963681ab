"""Qwen3's tokenizer out of published ranks: the ids that its model knows."""

from __future__ import annotations

import base64
from importlib.util import find_spec
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from training.exceptions import TokenizerError
from training.tokenizing.qwen_ranks import qwen3_tokenizer

pytestmark = pytest.mark.skipif(find_spec("dashscope") is None, reason="dashscope is not installed")


@pytest.fixture(scope="module")
def qwen() -> Tokenizer:
    return qwen3_tokenizer()


@pytest.mark.parametrize(
    ("mark", "number"),
    [
        ("<|endoftext|>", 151643),
        ("<|im_start|>", 151644),
        ("<|im_end|>", 151645),
        ("<tool_call>", 151657),
        ("</tool_response>", 151666),
        ("<think>", 151667),
        ("</think>", 151668),
    ],
)
def test_marks_have_the_ids_of_qwen3(qwen: Tokenizer, mark: str, number: int) -> None:
    assert qwen.encode(mark, add_special_tokens=False).ids == [number]


def test_text_is_cut_as_qwen3_cuts_it(qwen: Tokenizer) -> None:
    # From Qwen's documentation of its tokenizer, and by the ranks.
    assert qwen.encode("Hello world 123", add_special_tokens=False).tokens == [
        "Hello",
        "Ġworld",
        "Ġ",
        "1",
        "2",
        "3",
    ]
    assert qwen.encode("Hello world", add_special_tokens=False).ids == [9707, 1879]


def test_merges_give_back_every_token_of_the_vocabulary(qwen: Tokenizer) -> None:
    for number in range(300, 151_643, 4_999):
        token = qwen.id_to_token(number)
        text = qwen.decode([number])
        if "�" not in text:
            assert qwen.encode(text, add_special_tokens=False).tokens == [token]


@pytest.mark.parametrize("content", [b"!!! 0\n", base64.b64encode(b"a") + b" 0\n", b"\xff"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ranks"
    path.write_bytes(content)
    with pytest.raises(TokenizerError):
        qwen3_tokenizer(path)
