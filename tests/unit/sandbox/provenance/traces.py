"""A small builder of traces, in the shapes in which agents really talk to the gateway."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast
from urllib.parse import quote_plus

from sandbox.trace import Event, HttpEvent, LlmEvent, ToolEvent, Trace, Usage
from scoring.types import Json, JsonObject

QUERY = "I'm looking for a blue canvas backpack with free shipping under 500 pesos"

SYSTEM = """You are a shopping agent. Tools:
- find_product(q, page, shop_id, price, sort, service): search the catalogue
- view_product_information(product_ids): details
- check_product_match(product_id, requirements): compare a product with requirements
- find_products_in_same_shop(product_queries): several products of one shop
- calculate_voucher(product_prices, voucher_type, discount_value, threshold, budget, cap)
- recommend_product(product_ids): give the answer, once
- terminate(status): end
Example: <tool_call>[{"name": "find_product", "parameters": {"q": "red running shoes"}}]</tool_call>
"""

AGENT_SOURCE = f"""
SYSTEM = {SYSTEM!r}

def agent_main(problem):
    ...
""".encode()


def call(name: str, **arguments: Json) -> JsonObject:
    """A call as models write it."""
    return {"name": name, "parameters": arguments}


def tagged(think: str, *calls: JsonObject) -> str:
    """A completion in the text form."""
    text = f"<think>{think}</think>"
    return text + (f"<tool_call>{json.dumps(list(calls))}</tool_call>" if calls else "")


def native(content: str | None, *calls: JsonObject, ids: Sequence[str] = ()) -> JsonObject:
    """An assistant message in the native form."""
    items: list[Json] = [
        {
            "id": ids[i] if i < len(ids) else f"call_{i}",
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["parameters"])},
        }
        for i, c in enumerate(calls)
    ]
    message: JsonObject = {"role": "assistant", "content": content}
    return message | {"tool_calls": items} if items else message


def listing(*ids: int | str, shop: str = "7") -> Json:
    """A page of search results."""
    return [
        {"product_id": str(i), "shop_id": shop, "title": f"Canvas bag number {i}", "price": 99.0}
        for i in ids
    ]


def step(think: str, *calls: JsonObject, query: str = QUERY) -> JsonObject:
    """One step of a dialogue."""
    message: JsonObject = {"think": think, "tool_call": list(calls), "response": ""}
    return {
        "completion": {"reasoning_content": "", "content": "", "message": message},
        "extra_info": {"step": 1, "query": query, "timestamp": 1},
    }


def _arguments(made: JsonObject) -> JsonObject:
    arguments = made["parameters"]
    assert isinstance(arguments, dict)
    return arguments


class TraceBuilder:
    """Appends events, each 100 ms after the one before."""

    def __init__(self) -> None:
        self._messages: list[JsonObject] = []
        self._events: list[Event] = []
        self._at = 0.0

    @property
    def trace(self) -> Trace:
        return Trace(tuple(self._messages), tuple(self._events))

    def llm(
        self,
        prompt: Sequence[JsonObject],
        *answers: str | JsonObject,
        status: int = 200,
        **params: Json,
    ) -> int:
        """A completion: each answer is one choice, a text or a whole message."""
        choices: list[JsonObject] = []
        for index, answer in enumerate(answers):
            content: JsonObject = {"role": "assistant", "content": cast("Json", answer)}
            message = content if isinstance(answer, str) else answer
            choices.append({"index": index, "message": message, "finish_reason": "stop"})
        seq = len(self._events)
        self._events.append(
            LlmEvent(
                seq=seq,
                started_ms=self._tick(),
                elapsed_ms=50.0,
                waited_ms=50.0,
                model="m",
                server="s",
                standin=False,
                prompt=tuple(self._index(m) for m in prompt),
                params={"model": "m", **params},
                status=status,
                choices=tuple(choices),
                usage=Usage(10, 10),
            )
        )
        return seq

    def wire(self, name: str, result: Json = None, status: int = 200, **arguments: Json) -> int:
        """A GET of the SN15 wire: every value is text, `q` still carries the agent's quoting."""
        texts: JsonObject = {k: str(v) for k, v in arguments.items() if v is not None}
        if "q" in texts:
            texts["q"] = quote_plus(str(texts["q"]))
        return self._tool("search", name, texts, result, status)

    def tool(self, name: str, result: Json = None, status: int = 200, **arguments: Json) -> int:
        """A POST to /tools/{name}."""
        return self._tool("tools", name, arguments, result, status)

    def dispatch(self, made: JsonObject, result: Json = None) -> int:
        """A POST of a call as `call` writes it."""
        return self._tool("tools", str(made["name"]), _arguments(made), result, 200)

    def http(self, path: str = "/health") -> None:
        """Any other request."""
        self._events.append(HttpEvent(len(self._events), self._tick(), 1.0, "GET", path, 200))

    def _tool(self, via: str, name: str, arguments: JsonObject, result: Json, status: int) -> int:
        seq = len(self._events)
        self._events.append(
            ToolEvent(
                seq=seq,
                started_ms=self._tick(),
                elapsed_ms=3.0,
                via="search" if via == "search" else "tools",
                name=name,
                arguments=arguments,
                status=status,
                result=[] if result is None else result,
            )
        )
        return seq

    def _index(self, message: JsonObject) -> int:
        if message not in self._messages:
            self._messages.append(message)
        return self._messages.index(message)

    def _tick(self) -> float:
        self._at += 100.0
        return self._at


class TagAgent:
    """The real default agent: system text, and one user text with the whole history as tags."""

    def __init__(self, build: TraceBuilder, query: str = QUERY) -> None:
        self.build = build
        self.history = ""
        self.query = query

    def ask(self, think: str, *calls: JsonObject, answer: str | None = None) -> None:
        """One completion, and its turn appended to the history."""
        self.build.llm(self.prompt(), answer or tagged(think, *calls), temperature=0)
        shown = [c | {"tool_call_id": f"id{i}"} for i, c in enumerate(calls)]
        self.history += f"<think>{think}</think><tool_call>{json.dumps(shown)}</tool_call>"

    def observe(self, *results: Json) -> None:
        """The results of the last calls."""
        items = [{"tool_call_id": f"id{i}", "results": r} for i, r in enumerate(results)]
        self.history += f"<obs>{json.dumps(items)}</obs>"

    def prompt(self) -> list[JsonObject]:
        return [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": f"{self.query}\n{self.history}"},
        ]
