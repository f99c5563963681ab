"""The model drives over native tool calls; this file only carries out what it says."""

import json
import os
from collections.abc import Iterator
from typing import Any

import requests

SYSTEM = "You are a shopping assistant. Search, look, recommend once, then terminate."
NAMES = {
    "find_product": ("q", "page", "shop_id", "price", "sort", "service"),
    "view_product_information": ("product_ids",),
    "check_product_match": ("product_id", "requirements"),
    "calculate_voucher": (
        "product_prices", "voucher_type", "discount_value", "threshold", "budget", "cap",
    ),
    "recommend_product": ("product_ids",),
    "terminate": ("status",),
}  # fmt: skip
SHOWN = True
"""Whether the model is handed the results."""
URL = os.environ["SANDBOX_PROXY_URL"].rstrip("/")


def schemas() -> Iterator[dict[str, Any]]:
    """The tools as a request offers them."""
    for name, parameters in NAMES.items():
        properties = {p: {"type": "string"} for p in parameters}
        body = {"name": name, "parameters": {"type": "object", "properties": properties}}
        yield {"type": "function", "function": body}


def post(path: str, body: Any) -> Any:
    """The decoded answer."""
    return requests.post(URL + path, json=body, timeout=60).json()


def agent_main(problem: dict[str, str]) -> list[dict[str, Any]]:
    """Hand every call to the gateway and every answer to the model."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": problem["query"]},
    ]
    steps: list[dict[str, Any]] = []
    for _ in range(12):
        body = {
            "model": os.environ["SANDBOX_MODEL"],
            "messages": messages,
            "tools": list(schemas()),
            "temperature": 0,
        }
        message = post("/inference/chat/completions", body)["choices"][0]["message"]
        messages.append(message)
        done = []
        for call in message.get("tool_calls") or []:
            name = call["function"]["name"]
            arguments = json.loads(call["function"]["arguments"])
            result = post("/tools/" + name, arguments)
            told = json.dumps(result, ensure_ascii=False) if SHOWN else '"ok"'
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})
            done.append({"name": name, "parameters": arguments})
        think = message.get("content") or ""
        steps.append({"completion": {"message": {"think": think, "tool_call": done}}})
        if not done or done[-1]["name"] == "terminate":
            break
    return steps
