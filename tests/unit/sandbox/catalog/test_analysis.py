from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.catalog.analysis import STOP_WORDS, analyse
from sandbox.catalog.tokenizer import MAX_TOKEN_UNITS, automaton, class_table, tokens

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=80)
"""Lone surrogates, NUL and unassigned code points included."""


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Men's T-Shirts, the 1.5L", ["men", "t", "shirt", "1.5l"]),
        ("O'Reilly’S women’s", ["o'reilli", "women"]),
        ("sling腰间包", ["sling", "腰", "间", "包"]),
        ("ขวดน้ำ カメラ ひら 한국어", ["ขวดน้ำ", "カメラ", "ひ", "ら", "한국어"]),
        ("❤️🔥🇵🇭✅®👍🏽 1️⃣", ["❤️", "🔥", "🇵🇭", "✅", "®", "👍🏽", "1️⃣"]),
        ("½ cup 3m² __ _a_", ["cup", "3m", "_a_"]),
        ("İSTANBUL ΣΑΣ", ["istanbul", "σασ"]),
        ('a"b ש"ס 1,000.5 a:b', ["b", 'ש"ס', "1,000.5", "a:b"]),
        ("\x00nul\x00 \ud800 \u202eabc", ["nul", "abc"]),
    ],
)
def test_text_becomes_the_terms_of_lucene(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


def test_there_are_the_33_stop_words_of_lucene() -> None:
    assert len(STOP_WORDS) == 33
    assert analyse(" ".join(STOP_WORDS)) == []


def test_a_token_longer_than_lucene_allows_is_cut_into_pieces() -> None:
    assert [len(t) for t in tokens("x" * 600)] == [MAX_TOKEN_UNITS, MAX_TOKEN_UNITS, 90]
    assert [len(t) for t in tokens("𐐀" * 200)] == [127, 73]


@settings(deadline=None)
@given(ANY_TEXT)
def test_analysis_never_raises(text: str) -> None:
    assert all(isinstance(term, str) for term in analyse(text))


@settings(deadline=None)
@given(ANY_TEXT)
def test_tokens_are_pieces_of_the_text_in_order(text: str) -> None:
    at = 0
    for token in tokens(text):
        at = text.index(token, at) + len(token)


@settings(deadline=None)
@given(ANY_TEXT, ANY_TEXT)
def test_a_line_break_parts_tokens(left: str, right: str) -> None:
    assert analyse(left + "\n" + right) == analyse(left) + analyse(right)


def test_the_automaton_is_small_and_the_table_covers_all_code_points() -> None:
    machine = automaton()
    assert machine.steps.shape[0] == machine.accepting.size < 1000
    assert class_table().size == 0x110000
    assert not machine.accepting[0]
    assert not machine.steps[0].any()
