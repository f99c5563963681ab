"""Whatever an agent writes has one canonical form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.runs.canonical import MAX_DEPTH, canonical

_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None, categories=None))
)
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(_values)
def test_any_json_value_becomes_utf8_json_with_sorted_keys(value: Any) -> None:
    content = canonical(value)
    assert canonical(json.loads(content)) == content or _has_large_number(json.loads(content))


@given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9)))
def test_the_order_of_keys_changes_nothing(value: dict[str, int]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(dict(value))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2**53 - 1, b"9007199254740991"),
        (2**53, b'"9007199254740992"'),
        (-(2**53), b'"-9007199254740992"'),
        (float("nan"), b'"NaN"'),
        (float("inf"), b'"Infinity"'),
        (float("-inf"), b'"-Infinity"'),
        (-0.0, b"0"),
        (1e300, b"1e+300"),
        ("\ud83d", rb'"\\ud83d"'),
        ("\0", rb'"\u0000"'),
        ("é", '"é"'.encode()),
        ({"\udc00": 1}, rb'{"\\udc00":1}'),
        ((1, 2), b"[1,2]"),
        ({"b": 1, "a": True}, b'{"a":true,"b":1}'),
    ],
)
def test_what_canonical_json_cannot_hold_is_replaced(value: Any, expected: bytes) -> None:
    assert canonical(value) == expected


def test_a_huge_integer_is_kept_without_printing_it_in_decimal() -> None:
    assert canonical(2**100_000).startswith(b'"0x1000')


def test_deep_nesting_is_cut_and_said() -> None:
    value: Any = "bottom"
    for _ in range(MAX_DEPTH + 400):
        value = [value]
    content = canonical(value)
    assert b"[nested too deep]" in content
    assert content.count(b"[") == MAX_DEPTH + 1


def test_what_is_not_json_is_a_bug_and_raises() -> None:
    with pytest.raises(TypeError):
        canonical({"a": object()})  # type: ignore[dict-item]


def _has_large_number(value: Any) -> bool:
    """Floats from 2**53 on print as integers, which read back as text: never made again."""
    if isinstance(value, dict):
        return any(_has_large_number(v) for v in value.values())
    if isinstance(value, list):
        return any(_has_large_number(v) for v in value)
    return isinstance(value, int) and abs(value) >= 2**53
