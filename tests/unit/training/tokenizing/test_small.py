"""Small tokenizers: lossless, of the family, and cut so that ids can be copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.training.small import TOKENIZER_TEXTS, tokenizer_of
from training.exceptions import TokenizerError
from training.render.marks import MARKS, harmless
from training.tokenizing import load_tokenizer, tokenizer_hash
from training.tokenizing.small import LEAST, train_small

SMALL = train_small(TOKENIZER_TEXTS, LEAST + 200)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_text_comes_back_to_the_letter(text: str) -> None:
    normal = SMALL.normalizer.normalize_str(harmless(text))
    ids = SMALL.encode(harmless(text), add_special_tokens=False).ids
    assert SMALL.decode(ids, skip_special_tokens=False) == normal


@given(st.integers(10**9, 10**10 - 1))
def test_a_product_id_is_the_same_four_tokens_wherever_it_stands(number: int) -> None:
    digits = str(number)
    expected = [digits[0:3], digits[3:6], digits[6:9], digits[9]]
    for text in (digits, f'"product_id": "{digits}", "x"', f"take {digits}.", f"1,{digits},2"):
        tokens = SMALL.encode(text, add_special_tokens=False).tokens
        assert any(tokens[i : i + 4] == expected for i in range(len(tokens)))


def test_every_mark_is_one_token_and_ids_follow_their_order() -> None:
    ids = [SMALL.encode(mark, add_special_tokens=False).ids for mark in MARKS]
    assert [len(one) for one in ids] == [1] * len(MARKS)
    assert [one[0] for one in ids] == list(range(ids[0][0], ids[0][0] + len(MARKS)))


def test_a_key_with_its_punctuation_is_one_token_when_it_is_frequent() -> None:
    text = '{"product_id": "12", "title": "x"}'
    frequent = train_small([text] * 3, LEAST + 200)
    tokens = frequent.encode(text, add_special_tokens=False).tokens
    assert tokens[:3] == ['{"product_id":Ġ"', "12", '",Ġ"title":Ġ"']


def test_a_phrase_is_one_token_and_decodes_to_itself() -> None:
    phrase = "You are a shop <tool_call>\nwith a long system text"
    tokenizer = train_small(["something else"], LEAST + 50, [phrase])
    (one,) = tokenizer.encode(phrase, add_special_tokens=False).ids
    assert tokenizer.decode([one], skip_special_tokens=False) == phrase


def test_the_same_texts_give_the_same_tokenizer() -> None:
    assert train_small(TOKENIZER_TEXTS, LEAST + 200).to_str() == SMALL.to_str()


def test_a_vocabulary_without_room_is_refused() -> None:
    with pytest.raises(TokenizerError, match="leaves no room"):
        train_small(["x"], LEAST)


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    made = tokenizer_of(TOKENIZER_TEXTS, LEAST + 200)
    made.save_pretrained(str(tmp_path))
    loaded = load_tokenizer(tmp_path)
    assert tokenizer_hash(loaded) == tokenizer_hash(made)
    assert loaded.eos_token == "<|im_end|>"


def test_a_directory_without_a_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match="gives no tokenizer") as caught:
        load_tokenizer(tmp_path)
    assert "\n" not in caught.value.message


def test_a_tokenizer_of_another_family_is_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    other = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    wrapped: Any = PreTrainedTokenizerFast(tokenizer_object=other, unk_token="?")  # type: ignore[no-untyped-call]
    wrapped.save_pretrained(str(tmp_path))
    with pytest.raises(TokenizerError, match="not of the Qwen3 family"):
        load_tokenizer(tmp_path)
