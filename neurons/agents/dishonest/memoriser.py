"""Knows the open problems by heart and takes the first hit for every other one.

What the arena does about it: the gate finds the table of answers. And if it did not, the
race is run on problems that were never open, drawn after qualifying had closed: what it
knows by heart is not asked.
"""

from typing import Any

from src.agent.agent_interface import create_dialogue_step, execute_tool_call, register_tool
from src.agent.proxy_client import ProxyClient

ANSWERS: dict[str, str] = {}
"""Query → product ids. Whoever submits it fills it in (`neurons/demo/impostors.py`)."""

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
    """Remember, or search and take the first."""
    query = problem_data["query"]
    search = execute_tool_call("find_product", {"q": query[:300]})
    hits = search["result"]
    answer = ANSWERS.get(query) or (hits[0]["product_id"] if hits else "")
    steps = [("This one I have seen before.", [search])]
    steps.append(("", [execute_tool_call("recommend_product", {"product_ids": answer})]))
    steps.append(("Done.", [execute_tool_call("terminate", {"status": "success"})]))
    return [
        create_dialogue_step(think, calls, "", query, number)
        for number, (think, calls) in enumerate(steps, 1)
    ]
