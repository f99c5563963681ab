"""A typed client for agents written for this arena: the seven tools and the model.

Runs inside a sandbox, where it is imported as `arena_client`, on `requests`.

    from arena_client import ArenaClient
    arena = ArenaClient()
    hits = arena.find_product("leather belt", price="100-300", service="freeShipping")
    answer = arena.chat([{"role": "user", "content": "Which of these fits?"}])
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any, TypedDict, cast

import requests

RETRIED = frozenset({429, 500, 502, 503, 504})


class ProductHit(TypedDict):
    """A line of a search result. `price` is in pesos."""

    product_id: str
    shop_id: str
    title: str
    price: float
    service: list[str]
    sold_count: int


class ProductDetails(TypedDict):
    """What `view_product_information` says of one product."""

    product_id: str
    short_description: str
    description: str
    sku_options: dict[str, dict[str, str]]
    attributes: dict[str, list[str]]


class ProductSpec(TypedDict, total=False):
    """What to look for in one shop; `q` is required."""

    q: str
    price: str
    service: str


class Message(TypedDict, total=False):
    """The assistant's message of a completion."""

    role: str
    content: str | None
    tool_calls: list[dict[str, Any]]


class GatewayError(Exception):
    """The gateway refused: `status` and its own words. Status 0: no answer at all."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class ArenaClient:
    """The gateway of this sandbox. `timeout` and `wait` are seconds.

    429 and 5xx are tried again `tries` times in all, waiting `wait`, then twice as long
    each time. Raises GatewayError when that did not help.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        model: str | None = None,
        timeout: float = 300.0,
        tries: int = 5,
        wait: float = 0.5,
    ) -> None:
        self.url = (url or os.environ.get("SANDBOX_PROXY_URL") or "http://proxy:80").rstrip("/")
        self.model = model or os.environ.get("SANDBOX_MODEL") or ""
        self.timeout = timeout
        self.tries = tries
        self.wait = wait
        self._session = requests.Session()
        self._session.trust_env = False

    def find_product(
        self,
        q: str,
        *,
        page: int = 1,
        shop_id: str | None = None,
        price: str | None = None,
        sort: str | None = None,
        service: str | None = None,
    ) -> list[ProductHit]:
        """Search: up to ten products. `price` is "low-high", open on either side."""
        arguments = {
            "q": q,
            "page": page,
            "shop_id": shop_id,
            "price": price,
            "sort": sort,
            "service": service,
        }
        return cast("list[ProductHit]", self.tool("find_product", arguments))

    def view_product_information(self, product_ids: Sequence[str]) -> list[ProductDetails]:
        """Details of each product that exists."""
        arguments = {"product_ids": ",".join(product_ids)}
        return cast("list[ProductDetails]", self.tool("view_product_information", arguments))

    def check_product_match(self, product_id: str, requirements: dict[str, str]) -> dict[str, Any]:
        """Whether a product has the values asked for, and which not."""
        arguments = {"product_id": product_id, "requirements": json.dumps(requirements)}
        return cast("dict[str, Any]", self.tool("check_product_match", arguments))

    def find_products_in_same_shop(self, specs: Sequence[ProductSpec]) -> dict[str, Any]:
        """One shop that sells a product for each of the specs."""
        arguments = {"product_queries": json.dumps(list(specs))}
        return cast("dict[str, Any]", self.tool("find_products_in_same_shop", arguments))

    def calculate_voucher(
        self,
        prices: Sequence[float],
        voucher_type: str,
        discount_value: float,
        threshold: float,
        budget: float,
        cap: float = 0,
    ) -> dict[str, Any]:
        """What the prices come to after a `fixed` or `percentage` voucher (percent: 0-100)."""
        arguments = {
            "product_prices": ",".join(str(p) for p in prices),
            "voucher_type": voucher_type,
            "discount_value": discount_value,
            "threshold": threshold,
            "budget": budget,
            "cap": cap,
        }
        return cast("dict[str, Any]", self.tool("calculate_voucher", arguments))

    def recommend_product(self, product_ids: Sequence[str]) -> Any:
        """Recommend, in the order asked. Only once: a second one raises GatewayError 409."""
        return self.tool("recommend_product", {"product_ids": ",".join(product_ids)})

    def terminate(self, status: str = "success") -> Any:
        """End the dialogue: `success` or `failure`."""
        return self.tool("terminate", {"status": status})

    def chat(
        self,
        messages: Sequence[dict[str, Any]],
        *,
        tools: Sequence[dict[str, Any]] = (),
        **options: Any,
    ) -> Message:
        """One completion of SANDBOX_MODEL; `options` are those of OpenAI's chat API."""
        body: dict[str, Any] = {"model": self.model, "messages": list(messages), **options}
        if tools:
            body["tools"] = list(tools)
        answer = self._post("/inference/chat/completions", body)
        try:
            return cast("Message", answer["choices"][0]["message"])
        except (KeyError, IndexError, TypeError):
            raise GatewayError(200, "a completion without choices") from None

    def tool(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call any tool by name. Arguments that are None are left out."""
        given = {key: value for key, value in arguments.items() if value is not None}
        return self._post(f"/tools/{name}", given)

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        wait = self.wait
        for attempt in range(1, self.tries + 1):
            try:
                response = self._session.post(self.url + path, json=body, timeout=self.timeout)
                if response.ok:
                    return response.json()
                failure = GatewayError(response.status_code, response.text[:500])
            except (requests.RequestException, ValueError) as error:
                failure = GatewayError(0, str(error)[:500])
            if attempt == self.tries or (failure.status and failure.status not in RETRIED):
                raise failure
            time.sleep(wait)
            wait *= 2
        raise GatewayError(0, "no try was allowed")
