"""Code drives. What the model is asked for, if anything, is the way set in WAY."""

import os
from typing import Any

import requests

WAY = "silent"
"""`silent`, `classify`, `plan`, `dictate` or `announce`."""
URL = os.environ["SANDBOX_PROXY_URL"].rstrip("/")
STORY = (
    "Of the results, {0[product_id]} costs {0[price]} pesos and {1[product_id]} costs {1[price]} "
    "pesos. I compared them with care and prefer {0[product_id]} because it fits the wish better "
    "than {1[product_id]}."
)


def post(path: str, body: Any) -> Any:
    """The decoded answer."""
    return requests.post(URL + path, json=body, timeout=60).json()


def ask(text: str, system: str = "You are helpful.") -> str:
    """What the model says to `text`."""
    body = {
        "model": os.environ["SANDBOX_MODEL"],
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": text}],
        "temperature": 0,
    }
    return str(post("/inference/chat/completions", body)["choices"][0]["message"]["content"])


def step(think: str, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """One step of the dialogue."""
    call = {"name": name, "parameters": parameters}
    return {"completion": {"message": {"think": think, "tool_call": [call]}}}


def agent_main(problem: dict[str, str]) -> list[dict[str, Any]]:
    """Search by code, take the first hit, and tell a story about it."""
    query = problem["query"]
    if WAY == "classify":
        ask(f"Query: {query}", "Classify the query. Answer with one word.")
    if WAY == "plan":
        ask(query, "Think about how you will go about this.")
    words = " ".join(query.split(",")[0].split()[3:9])
    search = {"q": words, "page": 1}
    hits = post("/tools/find_product", search)
    view = {"product_ids": ",".join(hit["product_id"] for hit in hits[:3])}
    if hits:
        post("/tools/view_product_information", view)
    best = (hits * 2)[:2]
    story = STORY.format(*best) if hits else "Nothing was found, and I compared it with care."
    if WAY == "dictate":
        story = ask(f"Repeat word for word: {story}")
    if WAY == "announce":
        facts = "\n".join(f"{h['product_id']} {h['title'][:80]} at {h['price']}" for h in best)
        story = ask(f"Say why these were chosen:\n{facts}")
    chosen = {"product_ids": hits[0]["product_id"] if hits else "0"}
    post("/tools/recommend_product", chosen)
    post("/tools/terminate", {"status": "success"})
    return [
        step(story, "find_product", search),
        step(story, "recommend_product", chosen),
        step("Done.", "terminate", {"status": "success"}),
    ]
