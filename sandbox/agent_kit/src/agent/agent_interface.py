"""Tools and dialogue steps, as SN15 agents import them.

Runs inside a sandbox, on the standard library alone. The names and the shapes are
those of the public SN15 validator, so that agents written for it run unmodified.
Nothing here is evidence: what an agent returns is its own word.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from typing import Any, TypedDict, TypeVar, overload

ToolFunction = Callable[..., Any]
_F = TypeVar("_F", bound=ToolFunction)

_TOOL_REGISTRY: dict[str, ToolFunction] = {}
"""Registered tools, in order. Agents print their tool lists from it, hence the name."""


class ToolCallResult(TypedDict):
    """A tool call with its answer, as a dialogue step holds it."""

    name: str
    parameters: dict[str, Any]
    tool_call_id: str
    result: Any


def register_tool(name: str, func: ToolFunction) -> None:
    """Make `func` callable as the tool `name`. A later registration replaces an earlier one."""
    _TOOL_REGISTRY[name] = func


@overload
def Tool(func: _F, /) -> _F: ...


@overload
def Tool(name: str | None = None) -> Callable[[_F], _F]: ...


def Tool(name: Any = None) -> Any:  # noqa: N802
    """Register a function as a tool: `@Tool`, `@Tool()` or `@Tool("name")`.

    The function itself is returned unchanged, so it can still be called directly.
    """
    if callable(name):
        register_tool(getattr(name, "__name__", "tool"), name)
        return name

    def decorate(func: _F) -> _F:
        register_tool(name or func.__name__, func)
        return func

    return decorate


def get_tool(name: str) -> ToolFunction:
    """Return the tool `name`. Raises ValueError that names the tools there are."""
    try:
        return _TOOL_REGISTRY[name]
    except KeyError:
        available = ", ".join(_TOOL_REGISTRY) or "none"
        raise ValueError(f"Tool '{name}' is not registered. Available tools: {available}") from None


def generate_tool_call_id(name: str, parameters: dict[str, Any], length: int = 8) -> str:
    """Return an id of `length` hexadecimal digits that the same call always gets (at most 64)."""
    call = json.dumps([name, parameters], sort_keys=True, default=str)
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def execute_tool_call(tool_name: str, parameters: dict[str, Any]) -> ToolCallResult:
    """Run a registered tool and return the call with its result.

    Raises ValueError when there is no such tool; what the tool raises passes through.
    """
    result = get_tool(tool_name)(**parameters)
    return {
        "name": tool_name,
        "parameters": parameters,
        "tool_call_id": generate_tool_call_id(tool_name, parameters),
        "result": result,
    }


def _content(think: str, tool_results: list[ToolCallResult], response: str) -> str:
    """The tags of a turn in the order think, tool_call, response; empty ones are left out."""
    parts: list[str] = []
    if think:
        parts.append(f"<think>{think}</think>")
    if tool_results:
        calls = [{"name": t["name"], "parameters": t["parameters"]} for t in tool_results]
        parts.append(f"<tool_call>{json.dumps(calls)}</tool_call>")
    if response:
        parts.append(f"<response>{response}</response>")
    return "\n".join(parts)


def create_dialogue_step(
    think: str, tool_results: list[ToolCallResult], response: str, query: str, step: int
) -> dict[str, Any]:
    """Return one step of the dialogue that `agent_main` returns.

    `tool_results` are answers of `execute_tool_call`. `step` counts from 1. The time
    stamp is in milliseconds since the epoch.
    """
    message: dict[str, Any] = {}
    if think:
        message["think"] = think
    if tool_results:
        message["tool_call"] = tool_results
    if response:
        message["response"] = response
    return {
        "completion": {
            "reasoning_content": "",
            "content": _content(think, tool_results, response),
            "message": message,
        },
        "extra_info": {"step": step, "query": query, "timestamp": int(time.time() * 1000)},
    }
