"""The seven tools over a catalogue small enough to read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exceptions import ToolError
from sandbox.tools import TOOL_NAMES, TOOL_SCHEMAS, call_tool
from sandbox.tools.arguments import MAX_IDS, MAX_QUERY_CHARS, MAX_SPECS
from scoring.types import Json, JsonObject
from tests.unit.sandbox.worlds import MUG, WordCatalog


def call(tool: str, **arguments: Json) -> Json:
    return call_tool(tool, arguments, WordCatalog())


def ids(found: Json) -> list[Json]:
    assert isinstance(found, list)
    return [item["product_id"] for item in found if isinstance(item, dict)]


def test_a_search_in_a_shop_is_relaxed_step_by_step() -> None:
    catalog = WordCatalog()
    found = call_tool(
        "find_product", {"q": "camping mug yellow", "shop_id": "7", "service": "official"}, catalog
    )
    assert ids(found) == ["101"]
    assert catalog.asked == [
        ("camping mug yellow", "7", ("official",)),
        ("camping mug yellow", "7", ()),
        ("camping mug", "7", ()),
    ]


def test_a_search_outside_a_shop_is_not_relaxed() -> None:
    catalog = WordCatalog()
    assert call_tool("find_product", {"q": "camping mug yellow"}, catalog) == []
    assert len(catalog.asked) == 1


def test_no_search_is_made_twice_while_relaxing() -> None:
    catalog = WordCatalog()
    call_tool("find_product", {"q": "nothing here", "shop_id": "7"}, catalog)
    assert catalog.asked == [("nothing here", "7", ())]


def test_what_models_send_instead_of_text_is_understood() -> None:
    assert ids(call("find_product", q="enamel", shop_id=7, page="1", service=["COD"])) == [
        "101",
        "102",
    ]
    assert ids(call("view_product_information", product_ids=[103, "101"])) == ["103", "101"]
    assert ids(call("view_product_information", product_ids=101)) == ["101"]
    matched = call("check_product_match", product_id=101, requirements={"size": "350ML"})
    assert isinstance(matched, dict)
    assert matched["matched"] is True
    found = call("find_products_in_same_shop", product_queries=[{"q": "mug"}, {"q": "pot"}])
    assert isinstance(found, dict)
    assert found["shop_id"] == "7"
    assert call("recommend_product", product_ids=["1", 2]) == (
        "Having recommended the products to the user: 1,2."
    )


def test_nulls_are_arguments_that_are_not_given() -> None:
    assert ids(call("find_product", q="mug", shop_id=None, service=None, sort=None)) == ["101"]


@pytest.mark.parametrize(
    ("requirements", "matched"),
    [
        ('{"MATERIAL": "enamel"}', True),  # keys without case
        ('{"anything": "350ml"}', True),  # any SKU value
        ('{"anything": "for the camp"}', True),  # the description
        ('{"anything": "enamel campo"}', False),  # no match across two values
        ('{"size": ""}', True),
        ('{"size": 350}', True),
        ('{"size": null}', False),
    ],
)
def test_where_a_requirement_is_looked_for(requirements: str, matched: bool) -> None:
    report = call("check_product_match", product_id="101", requirements=requirements)
    assert isinstance(report, dict)
    assert report["matched"] is matched


@pytest.mark.parametrize("requirements", ["[1]", "7", "", "{", "NaN", None, "[" * 50_000])
def test_requirements_that_are_no_object_are_said_to_be_wrong(requirements: Json) -> None:
    assert call("check_product_match", product_id="101", requirements=requirements) == {
        "matched": False,
        "error": "Invalid requirements JSON",
    }


def test_a_shop_search_without_hits_says_which_product() -> None:
    assert call("find_products_in_same_shop", product_queries='[{"q": "sofa"}]') == {
        "found": False,
        "error": "No results for first product: sofa",
        "shops_tried": 0,
    }


def test_escapes_for_what_no_search_can_hold_are_replaced() -> None:
    catalog = WordCatalog()
    queries = r'[{"q": "a\ud800\u0000"}]'
    found = call_tool("find_products_in_same_shop", {"product_queries": queries}, catalog)
    assert catalog.asked == [("a��", None, ())]
    assert isinstance(found, dict)
    assert str(found["error"]).encode()


@pytest.mark.parametrize("queries", ["", "[", "{}", "[]", "7", None])
def test_product_queries_that_are_no_list_are_said_to_be_wrong(queries: Json) -> None:
    found = call("find_products_in_same_shop", product_queries=queries)
    assert isinstance(found, dict)
    assert found["found"] is False
    assert "shops_tried" not in found


@pytest.mark.parametrize(
    ("change", "after", "within"),
    [
        ({}, 20.0, True),
        ({"threshold": 30.01}, 30.0, False),
        ({"threshold": "30", "discount_value": "10.5"}, 19.5, True),
        ({"voucher_type": "percentage", "discount_value": 50}, 15.0, True),
        ({"voucher_type": "percentage", "discount_value": 50, "cap": 3}, 27.0, False),
        ({"voucher_type": "gift"}, 30.0, False),
        ({"product_prices": [10, 20.0]}, 20.0, True),
    ],
)
def test_a_voucher_is_calculated(change: JsonObject, after: float, within: bool) -> None:
    base: JsonObject = {"product_prices": "10, 20", "voucher_type": "fixed", "discount_value": 10,
                        "threshold": 30, "budget": 20}  # fmt: skip
    result = call_tool("calculate_voucher", base | change, WordCatalog())
    assert isinstance(result, dict)
    assert (result["total_after"], result["within_budget"]) == (after, within)


@pytest.mark.parametrize("prices", ["", "a", "1,,2", "nan", "inf", "1e999", "1e16"])
def test_prices_that_are_no_numbers_are_said_to_be_wrong(prices: str) -> None:
    result = call("calculate_voucher", product_prices=prices, voucher_type="fixed",
                  discount_value=1, threshold=1, budget=1)  # fmt: skip
    assert result == {"error": "Invalid product_prices format. Use comma-separated numbers."}


@pytest.mark.parametrize(
    ("tool", "arguments", "word"),
    [
        ("find_product", {}, "q is missing"),
        ("find_product", {"q": ["a"]}, "q must be text"),
        ("find_product", {"q": True}, "q must be text"),
        ("find_product", {"q": "a" * (MAX_QUERY_CHARS + 1)}, "longer"),
        ("find_product", {"q": "a", "page": "two"}, "whole number"),
        ("find_product", {"q": "a", "page": 1.5}, "whole number"),
        ("find_product", {"q": "a", "page": True}, "whole number"),
        ("find_product", {"query": "a"}, "takes q, page"),
        ("view_product_information", {}, "product_ids is missing"),
        ("view_product_information", {"product_ids": [{}]}, "comma-separated"),
        ("view_product_information", {"product_ids": "1," * (MAX_IDS + 1)}, "more than 50"),
        ("check_product_match", {"requirements": "{}"}, "product_id is missing"),
        ("check_product_match", {"product_id": "1", "requirements": " " * 70_000}, "longer"),
        (
            "check_product_match",
            {"product_id": "1", "requirements": {str(i): "a" for i in range(501)}},
            "more than 500",
        ),
        ("find_products_in_same_shop", {"product_queries": ["mug"]}, "object with q"),
        ("find_products_in_same_shop", {"product_queries": [{"q": {}}]}, "q must be text"),
        ("find_products_in_same_shop", {"product_queries": [{}] * (MAX_SPECS + 1)}, "more than"),
        ("calculate_voucher", {"product_prices": "1", "voucher_type": "fixed"}, "discount_value"),
        ("calculate_voucher", {"product_prices": "1", "voucher_type": "fixed", "discount_value": 1,
                               "threshold": 1, "budget": "1e999"}, "budget must be a number"),
        ("recommend_product", {}, "product_ids is missing"),
        ("recommend_product", {"product_ids": " , "}, "empty"),
        ("terminate", {"status": "maybe"}, "success or failure"),
        ("sell_everything", {}, "there is no tool"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_read_are_a_tool_error(
    tool: str, arguments: JsonObject, word: str
) -> None:
    with pytest.raises(ToolError) as caught:
        call_tool(tool, arguments, WordCatalog())
    assert word in caught.value.message


names = st.sampled_from(
    ["q", "page", "shop_id", "price", "sort", "service", "product_ids", "product_id", "cap",
     "requirements", "product_queries", "product_prices", "voucher_type", "discount_value",
     "threshold", "budget", "status"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["1", "mug", "fixed", "percentage", "7", '[{"q": "mug"}]', "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(TOOL_NAMES), st.dictionaries(names, values, max_size=7))
def test_any_arguments_are_answered_with_json_or_refused(tool: str, arguments: JsonObject) -> None:
    try:
        result = call_tool(tool, arguments, WordCatalog())
    except ToolError:
        return
    json.dumps(result, allow_nan=False)


def test_the_schemas_describe_the_seven_tools_and_what_they_take() -> None:
    functions = [schema["function"] for schema in TOOL_SCHEMAS]
    assert [f["name"] for f in functions if isinstance(f, dict)] == list(TOOL_NAMES)
    for function in functions:
        assert isinstance(function, dict)
        parameters = function["parameters"]
        assert isinstance(parameters, dict)
        taken = parameters["properties"]
        assert isinstance(taken, dict)
        with pytest.raises(ToolError) as caught:
            call_tool(str(function["name"]), {"no such": 1}, WordCatalog())
        assert f"takes {', '.join(taken)}; not" in caught.value.message


def test_a_product_is_summed_up_by_its_first_ten_attributes() -> None:
    many = replace(MUG, attributes={str(i): ("x",) for i in range(20)})
    report = call_tool(
        "check_product_match", {"product_id": "101", "requirements": "{}"}, WordCatalog([many])
    )
    assert isinstance(report, dict)
    summary = report["product_summary"]
    assert isinstance(summary, dict)
    assert summary["attributes"] == {str(i): ["x"] for i in range(10)}
