"""The search wire: decoded once, never surprised."""

from __future__ import annotations

from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exceptions import ToolError
from sandbox.gateway import wire
from tests.unit.sandbox.worlds import WordCatalog

plain = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40
)  # fmt: skip


@given(q=plain, page=st.integers(1, 5))
def test_a_value_is_decoded_exactly_once(q: str, page: int) -> None:
    twice = urlencode({"q": quote_plus(q), "page": page})
    call = wire.parse_target(f"/search/find_product?{twice}")
    assert call.arguments == {"q": quote_plus(q), "page": str(page)}
    assert call.query == twice


@given(st.dictionaries(plain, plain, max_size=8))
def test_a_query_string_comes_back_as_it_was_encoded(fields: dict[str, str]) -> None:
    assert wire.decode_query(urlencode(fields)) == fields
    assert wire.decode_query(urlencode(fields, quote_via=quote)) == fields


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=100))
def test_any_query_string_is_answered_or_refused(query: str) -> None:
    try:
        call = wire.parse_target(f"/search/find_product?{query}")
        assert isinstance(wire.answer(call, WordCatalog()), list)
    except ToolError as error:
        assert error.code == "tool.bad_encoding"  # noqa: PT017 - only sometimes raised


@pytest.mark.parametrize("query", ["q=%FF", "q=%00", "q=%ED%A0%80", "a=1&" * 40])
def test_what_is_no_text_is_refused(query: str) -> None:
    with pytest.raises(ToolError):
        wire.parse_target(f"/search/find_product?{query}")


def test_of_a_field_given_twice_the_last_counts() -> None:
    call = wire.parse_target("/search/find_product?q=mug&q=pot&page=1")
    assert call.arguments["q"] == "pot"


def test_a_query_too_long_to_be_one_is_refused() -> None:
    call = wire.parse_target(f"/search/find_product?q={'a' * 9000}&page=1")
    with pytest.raises(ToolError, match="longer"):
        wire.answer(call, WordCatalog())


@pytest.mark.parametrize("path", ["/search/get_product_raw", "/health", "find_product", ""])
def test_another_path_is_no_search(path: str) -> None:
    with pytest.raises(ToolError):
        wire.parse_target(path)


def test_services_and_shop_are_filters() -> None:
    target = "/search/find_product?q=enamel&page=1&service=COD,official&shop_id=7&sort=&price="
    found = wire.answer(wire.parse_target(target), WordCatalog())
    assert isinstance(found, list)
    assert [item["product_id"] for item in found if isinstance(item, dict)] == ["102"]
