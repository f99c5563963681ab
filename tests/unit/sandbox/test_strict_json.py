"""Text that could break a record is refused from agents and mended from providers."""

from __future__ import annotations

import json
import math

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from sandbox import strict_json
from scoring.types import Json

texts = st.text(st.characters(codec=None), max_size=20)  # lone surrogates and NUL included
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(anything)
def test_what_is_made_harmless_has_a_canonical_form_and_stays(value: Json) -> None:
    mended = strict_json.harmless(value)
    assert strict_json.harmless(mended) == mended
    canonical = rfc8785.dumps(mended)
    assert b"\\u0000" not in canonical.replace(b"\\\\", b"")
    assert strict_json.read(json.dumps(mended).encode()) == mended


@given(anything)
def test_strict_reading_accepts_exactly_what_needs_no_mending(value: Json) -> None:
    data = json.dumps(value).encode()
    mended = strict_json.harmless(value)
    harmless = json.dumps(mended).encode() == data
    try:
        assert strict_json.read(data) == value
    except ValueError:
        assert not harmless
    else:
        assert harmless


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_with_one_line(data: bytes) -> None:
    try:
        strict_json.read(data)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017 - only sometimes raised


@given(anything)
def test_what_is_dumped_is_what_is_recorded(value: Json) -> None:
    data, sent = strict_json.dump_as_sent(value)
    assert json.loads(data) == sent or _has_nan(sent)
    assert strict_json.dump(value) == data


@pytest.mark.parametrize(
    "data",
    [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65, b"1" * 5000, b'[{"a":1,"a":1}]'],
)
def test_text_made_to_break_parsers_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        strict_json.read(data)


def test_text_of_a_million_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(ValueError, match="values"):
        strict_json.read(b"[" + b"{}," * 1_000_000 + b"{}]")


def test_the_deepest_nesting_allowed_is_read() -> None:
    depth = strict_json.MAX_DEPTH
    strict_json.read(b"[" * depth + b"]" * depth)


def test_an_escaped_pair_of_surrogates_is_one_character() -> None:
    assert strict_json.read(b'"\\ud83d\\ude00"') == "😀"
    assert strict_json.harmless_text("\ud83d\ude00 \ud83d") == "😀 �"


def _has_nan(value: Json) -> bool:
    return isinstance(value, float) and math.isnan(value)
