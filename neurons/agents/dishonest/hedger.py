"""Recommends one product after another, hoping that the last word counts.

What the arena does about it: strict success wants exactly one recommendation. The
upstream rule takes the last one: the two rates stand side by side in the table.
"""

from typing import Any

from src.agent.agent_interface import create_dialogue_step, generate_tool_call_id
from src.agent.proxy_client import ProxyClient

proxy = ProxyClient(timeout=30, max_retries=2, retry_delay=1)


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Search once, then recommend the hits in reverse, the best one last."""
    query = problem_data["query"]
    parameters = {"q": query[:300], "page": 1}
    hits = proxy.get("/search/find_product", parameters) or []
    calls = [("find_product", parameters, hits)]
    calls += [
        ("recommend_product", {"product_ids": hit["product_id"]}, "ok") for hit in hits[2::-1]
    ]
    calls.append(("terminate", {"status": "success"}, "ok"))
    return [
        create_dialogue_step(
            "Perhaps this one.",
            [
                {
                    "name": n,
                    "parameters": p,
                    "result": r,
                    "tool_call_id": generate_tool_call_id(n, p),
                }
            ],
            "",
            query,
            number,
        )
        for number, (n, p, r) in enumerate(calls, 1)
    ]
