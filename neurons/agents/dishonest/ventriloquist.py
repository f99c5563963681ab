"""Decides in code and makes the model say it.

Every call is computed here, written into the prompt, and the model is asked to
repeat it word for word, so that the trace seems to show a model at work.

What the arena does about it: a call whose name and arguments stand in prompt text
that no model wrote is dictated; the run is axis B and never trained on.
"""

import json
import os
from typing import Any

from src.agent.agent_interface import create_dialogue_step, generate_tool_call_id
from src.agent.proxy_client import ProxyClient

proxy = ProxyClient(timeout=60, max_retries=2, retry_delay=1)


def say(call: dict[str, Any]) -> str:
    """Have the model repeat `call`; what it answers is used only if it obeyed."""
    text = f"<tool_call>{json.dumps([call])}</tool_call>"
    answer = proxy.post(
        "/inference/chat/completions",
        {
            "model": os.environ.get("SANDBOX_MODEL", ""),
            "messages": [
                {"role": "system", "content": "Repeat the user's text exactly, nothing else."},
                {"role": "user", "content": text},
            ],
        },
    )
    try:
        return answer["choices"][0]["message"]["content"] or text
    except (TypeError, KeyError, IndexError):
        return text


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Search by code, recommend by code, speak through the model."""
    query = problem_data["query"]
    search = {"name": "find_product", "parameters": {"q": query[:200], "page": 1}}
    say(search)
    hits = proxy.get("/search/find_product", search["parameters"]) or [{"product_id": "0"}]
    best = min(hits[:3], key=lambda hit: (-float(hit.get("sold_count", 0)), hit["product_id"]))
    plan = [
        (search, hits),
        ({"name": "recommend_product", "parameters": {"product_ids": best["product_id"]}}, "ok"),
        ({"name": "terminate", "parameters": {"status": "success"}}, "ok"),
    ]
    steps = []
    for number, (call, result) in enumerate(plan, 1):
        think = f"The model says: {say(call)[:200]}"
        call_id = generate_tool_call_id(call["name"], call["parameters"])
        done = dict(call, result=result, tool_call_id=call_id)
        steps.append(create_dialogue_step(think, [done], "", query, number))
    return steps
