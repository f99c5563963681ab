"""A row of axis B, as the exporter writes it."""

from __future__ import annotations

import json

from scoring.types import Json, JsonObject

QUERY = "I want a red mug below 300 pesos"
HITS: Json = [
    {"product_id": "410000001", "shop_id": "77", "title": "Red enamel mug", "price": 199.5},
    {"product_id": "410000002", "shop_id": "78", "title": "Red ceramic mug", "price": 289},
]
DETAIL: Json = [{"product_id": "410000001", "attributes": {"Material": ["Enamel"]}}]


def called(number: int, name: str, arguments: JsonObject) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": json.dumps(arguments, sort_keys=True)}
    call: JsonObject = {"id": f"call_{number}", "type": "function", "function": function}
    return {
        "role": "assistant",
        "content": "",
        "reasoning_content": None,
        "tool_calls": [call],
        "tool_call_id": None,
        "name": None,
    }


def answered(number: int, result: Json) -> JsonObject:
    return {
        "role": "tool",
        "content": json.dumps(result),
        "reasoning_content": None,
        "tool_calls": None,
        "tool_call_id": f"call_{number}",
        "name": None,
    }


def row(query: str = QUERY) -> list[JsonObject]:
    """Search, view, recommend, terminate."""
    return [
        {"role": "system", "content": "You shop."},
        {"role": "user", "content": query},
        called(1, "find_product", {"q": "red mug"}),
        answered(1, HITS),
        called(2, "view_product_information", {"product_ids": "410000001"}),
        answered(2, DETAIL),
        called(3, "recommend_product", {"product_ids": "410000001"}),
        answered(3, "recommended"),
        called(4, "terminate", {"status": "success"}),
        answered(4, "done"),
    ]


THOUGHTS = (
    "I have seen nothing yet, so I begin with a search for red mugs in general.",
    "Product 410000001 at 199.5 is cheaper than 410000002 at 289, and both are red; the cheaper one"
    " leaves more of the 300, so I look at it first.",
    "410000001 is made of Enamel and costs 199.5, below 300, while 410000002 at 289 is dearer; I"
    " take 410000001.",
    "The recommendation of 410000001 stands, so I am done.",
)
