from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.catalog.stemmer import stem

# Porter's own examples, one or two a rule, as the whole algorithm leaves them.
EXAMPLES = """
caresses caress ponies poni ties ti caress caress cats cat feed feed agreed agre
plastered plaster bled bled motoring motor sing sing conflated conflat troubled troubl
sized size hopping hop tanned tan falling fall hissing hiss fizzed fizz failing fail
filing file happy happi sky sky relational relat conditional condit rational ration
valenci valenc hesitanci hesit digitizer digit conformabli conform radicalli radic
differentli differ vileli vile analogousli analog vietnamization vietnam predication predic
operator oper feudalism feudal decisiveness decis hopefulness hope callousness callous
formaliti formal sensitiviti sensit sensibiliti sensibl triplicate triplic formative form
formalize formal electriciti electr electrical electr hopeful hope goodness good
revival reviv allowance allow inference infer airliner airlin gyroscopic gyroscop
adjustable adjust defensible defens irritant irrit replacement replac adjustment adjust
dependent depend adoption adopt homologou homolog communism commun activate activ
angulariti angular homologous homolog effective effect bowdlerize bowdler
probate probat rate rate cease ceas controll control roll roll
"""
PAIRS = EXAMPLES.split()


@pytest.mark.parametrize(("word", "expected"), list(zip(PAIRS[::2], PAIRS[1::2], strict=True)))
def test_porters_examples(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("word", "expected"),
    [("apologi", "apolog"), ("abli", "abli"), ("sensibli", "sensibl"), ("generousli", "gener")],
)
def test_the_authors_departures(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["", "s", "is", "y", "腰", "é"])
def test_words_of_one_or_two_letters_stay(word: str) -> None:
    assert stem(word) == word


def test_a_letter_outside_the_basic_plane_counts_as_two() -> None:
    assert stem("𐐨s") == "𐐨"
    assert stem("ɐs") == "ɐs"


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=30))
def test_stemming_never_raises_nor_lengthens_by_more_than_a_letter(word: str) -> None:
    assert len(stem(word)) <= len(word) + 1
