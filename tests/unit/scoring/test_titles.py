"""Title similarity without a model."""

from __future__ import annotations

from scoring.titles import TITLE_THRESHOLD, LexicalTitles, NoTitles
from tests.unit.scoring.builders import problem


def test_without_a_model_nothing_is_said_of_any_title() -> None:
    assert NoTitles().similarity(problem(), "a", "a") is None


def test_the_lexical_stand_in_looks_past_order_case_and_punctuation() -> None:
    titles = LexicalTitles()
    assert titles.similarity(problem(), "Red, hat!", "HAT red") == 1.0
    close = titles.similarity(problem(), "red cotton hat for men", "red cotton hats for men")
    far = titles.similarity(problem(), "red cotton hat for men", "garden hose 20 m")
    assert close is not None
    assert far is not None
    assert far < TITLE_THRESHOLD < close


def test_it_says_in_its_name_what_decided() -> None:
    assert "rapidfuzz" in LexicalTitles().name
