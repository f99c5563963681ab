"""The model drives in tag text: one user message holds the whole history, as SN15 agents do."""

import json
import os
from typing import Any

import requests

SYSTEM = (
    "You are a shopping assistant with find_product, view_product_information, "
    "check_product_match, calculate_voucher, recommend_product and terminate. Answer with "
    '<think>…</think><tool_call>[{"name": …, "parameters": {…}}]</tool_call>.'
)
URL = os.environ["SANDBOX_PROXY_URL"].rstrip("/")


def post(path: str, body: Any) -> Any:
    """The decoded answer."""
    return requests.post(URL + path, json=body, timeout=60).json()


def part(text: str, tag: str) -> str:
    """What stands inside the first such tag."""
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


def agent_main(problem: dict[str, str]) -> list[dict[str, Any]]:
    """Hand every call to the gateway and write every answer into the history."""
    history = ""
    steps: list[dict[str, Any]] = []
    for turn in range(12):
        body = {
            "model": os.environ["SANDBOX_MODEL"],
            "messages": [
                {"role": "system", "content": SYSTEM},
                {"role": "user", "content": problem["query"] + "\n" + history},
            ],
            "temperature": 0,
        }
        text = post("/inference/chat/completions", body)["choices"][0]["message"]["content"]
        think, calls = part(text, "think"), json.loads(part(text, "tool_call") or "[]")
        seen = []
        for i, call in enumerate(calls):
            result = post("/tools/" + call["name"], call["parameters"])
            seen.append({"tool_call_id": f"{turn}-{i}", "results": result})
        observed = json.dumps(seen, ensure_ascii=False).replace("<", "\\u003c")
        history += (
            f"<think>{think}</think>"
            f"<tool_call>{json.dumps(calls, ensure_ascii=False)}</tool_call><obs>{observed}</obs>"
        )
        steps.append({"completion": {"message": {"think": think, "tool_call": calls}}})
        if not calls or calls[-1]["name"] == "terminate":
            break
    return steps
