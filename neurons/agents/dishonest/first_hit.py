"""Recommends the first search hit and claims success. No model, no thought.

What the arena does about it: it may do this. The strict scorer passes the few
problems where the first hit is right, and the trace has no completion, so every
run is axis B.
"""

from typing import Any

from src.agent.agent_interface import create_dialogue_step, execute_tool_call, register_tool
from src.agent.proxy_client import ProxyClient

proxy = ProxyClient(timeout=30, max_retries=2, retry_delay=1)


def find_product(q: str, page: int = 1) -> list[dict[str, Any]]:
    """Search the catalogue over the wire."""
    return proxy.get("/search/find_product", {"q": q, "page": page}) or []


def recommend_product(product_ids: str) -> str:
    """Name the answer."""
    return f"Recommended {product_ids}"


def terminate(status: str = "success") -> str:
    """End the dialogue."""
    return f"Ended with {status}"


for tool in (find_product, recommend_product, terminate):
    register_tool(tool.__name__, tool)


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Search, take the first, leave."""
    query = problem_data["query"]
    search = execute_tool_call("find_product", {"q": query[:300]})
    hits = search["result"]
    first = hits[0]["product_id"] if hits else ""
    steps = [("The first hit must be it.", [search])]
    steps.append(("", [execute_tool_call("recommend_product", {"product_ids": first})]))
    steps.append(("Done.", [execute_tool_call("terminate", {"status": "success"})]))
    return [
        create_dialogue_step(think, calls, "", query, number)
        for number, (think, calls) in enumerate(steps, 1)
    ]
