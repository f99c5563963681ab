"""The deterministic pipeline: this code drives, the model classifies and narrates.

An example for miners, in one file: `arena agent run pipeline`. It reads the query with
regular expressions, searches, compares and recommends on its own; the model names the
bucket at the start and puts the findings into words at the end. Since code makes the
calls, its runs are axis B. It uses `arena_client`, which every sandbox offers, and
SANDBOX_PROXY_URL and SANDBOX_MODEL through it.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Sequence
from itertools import islice, product
from typing import Any

from arena_client import (  # type: ignore[import-not-found]  # lies in every sandbox
    ArenaClient,
    GatewayError,
)

logger = logging.getLogger("pipeline")

SHOPS = 3
"""Shops looked into when everything has to come from one."""

CLASSIFY = (
    "Classify a shopping query. Answer with one word: Product (one item), Shop (several items "
    "from one shop) or Voucher (several items within a budget and a voucher)."
)
NARRATE = "Say in two sentences what was found and why the chosen products fit the query best."

BETWEEN = re.compile(
    r"(?:between|from|ranging from|of)\s+(\d[\d,.]*\d|\d)\s*(?:php|pesos?)?\s*(?:and|to|-)\s*"
    r"(\d[\d,.]*\d|\d)\s*(?:php|pesos?)",
    re.IGNORECASE,
)
ABOVE = re.compile(r"(?:above|over|more than)\s+(\d[\d,.]*\d|\d)\s*(?:php|pesos?)", re.IGNORECASE)
BELOW = re.compile(r"(?:below|under|less than)\s+(\d[\d,.]*\d|\d)\s*(?:php|pesos?)", re.IGNORECASE)
SERVICES = {
    "official": re.compile(r"laz\s?mall[^,.;]*", re.IGNORECASE),
    "freeShipping": re.compile(r"(?:free|complimentary) (?:shipping|delivery)", re.IGNORECASE),
    "COD": re.compile(r"(?:cash|pay) on delivery", re.IGNORECASE),
    "flashsale": re.compile(r"laz\s?flash(?: deals?| offers?)?", re.IGNORECASE),
}
ITEM = re.compile(
    r"\(\d\)|\b\d\)|\b(?:first|second|third|fourth|lastly|finally|next|also|additionally),"
    r"|;|,? as well as |, and (?=an? )|, (?=an? )|\.\s+(?=[A-Z])|\band (?=an? )",
    re.IGNORECASE,
)
NOISE_TEXT = """
a an and are at be both by can color cost costing costs find for from have help i i'm in is it
item items looking made me need of offering offers on or please price priced product products
sell sells shop shops show size store that the these this to want with you
"""
NOISE = frozenset(NOISE_TEXT.split())


def words(text: str) -> list[str]:
    """The words of a text that say something."""
    found = re.findall(r"[a-z0-9][a-z0-9.'-]*[a-z0-9]|[a-z0-9]", text.lower())
    return [w for w in found if w not in NOISE]


def read_item(text: str) -> dict[str, Any]:
    """Search words, price filter and services of one item."""
    price = ""
    if match := BETWEEN.search(text):
        price, text = f"{match[1]}-{match[2]}", text.replace(match[0], " ")
    elif match := ABOVE.search(text):
        price, text = f"{match[1]}-", text.replace(match[0], " ")
    elif match := BELOW.search(text):
        price, text = f"-{match[1]}", text.replace(match[0], " ")
    services = [name for name, pattern in SERVICES.items() if pattern.search(text)]
    for pattern in SERVICES.values():
        text = pattern.sub(" ", text)
    wanted = list(dict.fromkeys(words(text)))[:20]
    return {"words": wanted, "price": price.replace(",", ""), "services": services}


def read_items(query: str, bucket: str) -> list[dict[str, Any]]:
    """The items of a query, in order."""
    wish = re.split(r"\bmy budget\b", query, flags=re.IGNORECASE)[0]
    parts = [wish] if bucket == "Product" else ITEM.split(wish)
    items = [read_item(part) for part in parts]
    return [item for item in items if len(item["words"]) > 1] or [read_item(wish)]


def read_voucher(query: str) -> dict[str, float | str] | None:
    """Budget, threshold and discount of a voucher query."""
    numbers = re.findall(r"`(\d[\d.]*)(%?)`", query)
    if len(numbers) < 3:
        return None
    percent = numbers[2][1] == "%"
    return {
        "budget": float(numbers[0][0]),
        "threshold": float(numbers[1][0]),
        "kind": "percentage" if percent else "fixed",
        "value": float(numbers[2][0]),
        "cap": float(numbers[3][0]) if percent and len(numbers) > 3 else 0.0,
        "same_shop": "same shop" if "same shop" in query else "",
    }


class Run:
    """One problem: the client, and the steps of the dialogue so far."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.client = ArenaClient()
        self.steps: list[dict[str, Any]] = []

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Make a tool call; the call with its result, for the dialogue."""
        try:
            result = self.client.tool(name, arguments)
        except GatewayError as error:
            logger.warning("%s: %s", name, error)
            result = {"error": error.message}
        return {
            "name": name,
            "parameters": arguments,
            "tool_call_id": f"{len(self.steps)}-{name}",
            "result": result,
        }

    def ask(self, system: str, text: str) -> str:
        """A word from the model; empty when there is none to be had."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
        try:
            return str(self.client.chat(messages, temperature=0, max_tokens=300).get("content"))
        except GatewayError as error:
            logger.warning("model: %s", error)
            return ""

    def step(self, think: str, calls: list[dict[str, Any]], response: str = "") -> None:
        """Write down one step."""
        shown = [{"name": c["name"], "parameters": c["parameters"]} for c in calls]
        content = f"<think>{think}</think>\n<tool_call>{json.dumps(shown)}</tool_call>"
        message: dict[str, Any] = {"think": think, "tool_call": calls}
        if response:
            content += f"\n<response>{response}</response>"
            message["response"] = response
        number = len(self.steps) + 1
        self.steps.append(
            {
                "completion": {"reasoning_content": "", "content": content, "message": message},
                "extra_info": {
                    "step": number,
                    "query": self.query,
                    "timestamp": int(time.time() * 1000),
                },
            }
        )


def search(run: Run, item: dict[str, Any], shop_id: str = "") -> list[dict[str, Any]]:
    """Hits for an item; with fewer conditions when there are none."""
    text = " ".join(item["words"])
    filters = {"price": item["price"], "service": ",".join(item["services"]), "shop_id": shop_id}
    attempts = [filters, {"price": item["price"], "shop_id": shop_id}, {"shop_id": shop_id}]
    calls: list[dict[str, Any]] = []
    hits: list[dict[str, Any]] = []
    for attempt in attempts:
        arguments = {"q": text, "page": 1, **{k: v for k, v in attempt.items() if v}}
        calls.append(run.call("find_product", arguments))
        if isinstance(calls[-1]["result"], list) and calls[-1]["result"]:
            hits = calls[-1]["result"]
            break
    run.step(f"I search for {text[:200]!r}.", calls)
    return hits


def score(item: dict[str, Any], hit: dict[str, Any], details: dict[str, Any]) -> float:
    """The share of the item's words that title, attributes and one SKU option show."""
    text = f"{hit.get('title', '')} {json.dumps(details.get('attributes', {}))}"
    options = [json.dumps(o) for o in (details.get("sku_options") or {}).values()] or [""]
    wanted = item["words"]
    return max(
        sum(w in have for w in wanted) / (len(wanted) or 1)
        for have in (set(words(f"{text} {option}".replace("_", " "))) for option in options)
    )


def rank(run: Run, item: dict[str, Any], hits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hits with their scores, best first, after a look at the details."""
    if not hits:
        return []
    ids = ",".join(str(h["product_id"]) for h in hits[:10])
    call = run.call("view_product_information", {"product_ids": ids})
    found = call["result"] if isinstance(call["result"], list) else []
    details = {d["product_id"]: d for d in found}
    ranked = [
        {**h, "score": score(item, h, details.get(h["product_id"], {})), "rank": n}
        for n, h in enumerate(hits[:10])
    ]
    ranked.sort(key=lambda h: (-h["score"], h["rank"]))
    shown = "; ".join(
        f"{h['product_id']} at {h['price']} fits {h['score']:.2f}" for h in ranked[:3]
    )
    run.step(f"By their details: {shown}.", [call])
    return ranked


def after_voucher(voucher: dict[str, Any], prices: list[float]) -> float:
    """What prices come to."""
    total = sum(prices)
    if total < voucher["threshold"]:
        return total
    if voucher["kind"] == "fixed":
        return total - float(voucher["value"])
    discount = total * float(voucher["value"]) / 100
    return total - (min(discount, voucher["cap"]) if voucher["cap"] else discount)


def choose(
    shelves: list[list[dict[str, Any]]], voucher: dict[str, Any] | None
) -> list[dict[str, Any]]:
    """One hit an item: the best scores, within the budget where there is one."""
    if not all(shelves):
        return [shelf[0] for shelf in shelves if shelf]

    def value(basket: Sequence[dict[str, Any]]) -> tuple[bool, float]:
        prices = [float(h["price"]) for h in basket]
        fits = voucher is None or after_voucher(voucher, prices) <= voucher["budget"]
        return fits, sum(h["score"] for h in basket)

    baskets = islice(product(*(shelf[:6] for shelf in shelves)), 20_000)
    best: Sequence[dict[str, Any]] = max(baskets, key=value)
    return list(best)


def from_one_shop(run: Run, items: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Ranked hits of the shop that serves all items best, of those seen most often."""
    shops: dict[str, int] = {}
    for item in items:
        for shop in {str(hit["shop_id"]) for hit in search(run, item)}:
            shops[shop] = shops.get(shop, 0) + 1
    best: list[list[dict[str, Any]]] = [[] for _ in items]
    for shop in sorted(shops, key=lambda s: (-shops[s], s))[:SHOPS]:
        shelves = [rank(run, item, search(run, item, shop)) for item in items]
        if promise(shelves) > promise(best):
            best = shelves
    return best


def promise(shelves: list[list[dict[str, Any]]]) -> float:
    """What the best of each shelf score together."""
    return sum(float(shelf[0]["score"]) for shelf in shelves if shelf)


def agent_main(problem_data: dict[str, Any]) -> list[dict[str, Any]]:
    """Work on one problem; the dialogue, step by step."""
    query = str(problem_data.get("query", ""))
    run = Run(query)
    named = re.search(r"product|shop|voucher", run.ask(CLASSIFY, f"Query: {query}").lower())
    bucket = named[0].capitalize() if named else str(problem_data.get("category", "Product"))
    items = read_items(query, bucket)
    voucher = read_voucher(query) if bucket == "Voucher" else None
    if len(items) > 1 and (bucket == "Shop" or (voucher and voucher["same_shop"])):
        shelves = from_one_shop(run, items)
    else:
        shelves = [rank(run, item, search(run, item)) for item in items]
    chosen = choose(shelves, voucher)
    if not chosen:
        run.step("Nothing was found.", [run.call("terminate", {"status": "failure"})])
        return run.steps
    ids = ",".join(str(h["product_id"]) for h in chosen)
    facts = "\n".join(f"{h['product_id']} {h['title']} at {h['price']}" for h in chosen)
    told = run.ask(NARRATE, f"Query: {query}\nChosen:\n{facts}") or f"I choose {ids}."
    told = told.replace("<", "(").replace(">", ")")
    run.step(told, [run.call("recommend_product", {"product_ids": ids})])
    done = run.call("terminate", {"status": "success"})
    run.step("The recommendation is made.", [done], response=f"I recommend {ids}.")
    return run.steps
