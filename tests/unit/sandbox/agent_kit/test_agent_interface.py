"""What SN15 agents import behaves as they expect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sandbox.agent_kit
from sandbox.agent_kit.src.agent import agent_interface as kit

KIT = Path(sandbox.agent_kit.__file__).parent


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Leave the registry of the module as it was."""
    before = dict(kit._TOOL_REGISTRY)
    yield
    kit._TOOL_REGISTRY.clear()
    kit._TOOL_REGISTRY.update(before)


def test_a_decorated_function_is_a_tool_and_still_itself() -> None:
    @kit.Tool
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    assert kit.get_tool("double") is double


def test_a_tool_can_be_named_in_three_ways() -> None:
    @kit.Tool("shout")
    def a(text: str) -> str:
        return text.upper()

    @kit.Tool(name="whisper")
    def b(text: str) -> str:
        return text.lower()

    @kit.Tool()
    def plain() -> None: ...

    kit.register_tool("again", a)
    assert kit.get_tool("shout") is kit.get_tool("again") is a
    assert kit.get_tool("whisper") is b
    assert kit.get_tool("plain") is plain


def test_an_unknown_tool_names_those_there_are() -> None:
    kit.register_tool("known", lambda: None)
    with pytest.raises(ValueError, match="known"):
        kit.get_tool("unknown")
    with pytest.raises(ValueError, match="known"):
        kit.execute_tool_call("unknown", {})


def test_an_executed_call_carries_its_parameters_id_and_result() -> None:
    kit.register_tool("add", lambda a, b: a + b)
    call = kit.execute_tool_call("add", {"a": 1, "b": 2})
    assert call == {
        "name": "add",
        "parameters": {"a": 1, "b": 2},
        "tool_call_id": kit.generate_tool_call_id("add", {"b": 2, "a": 1}),
        "result": 3,
    }


@given(st.text(), st.dictionaries(st.text(), st.integers() | st.text()), st.integers(1, 32))
def test_an_id_is_deterministic_and_of_the_length_asked(
    name: str, parameters: dict[str, int | str], length: int
) -> None:
    first = kit.generate_tool_call_id(name, parameters, length)
    assert first == kit.generate_tool_call_id(name, dict(reversed(parameters.items())), length)
    assert len(first) == length
    assert first != kit.generate_tool_call_id(name + "x", parameters, 32)


def test_a_step_has_its_tags_in_order_and_no_results_in_its_text() -> None:
    kit.register_tool("add", lambda a: a)
    call = kit.execute_tool_call("add", {"a": 1})
    step = kit.create_dialogue_step("hm", [call], "done", "a query", 3)
    content = step["completion"]["content"]
    shown = json.dumps([{"name": "add", "parameters": {"a": 1}}])
    assert content == (
        f"<think>hm</think>\n<tool_call>{shown}</tool_call>\n<response>done</response>"
    )
    assert step["completion"]["message"] == {"think": "hm", "tool_call": [call], "response": "done"}
    assert step["extra_info"]["step"] == 3
    assert step["extra_info"]["query"] == "a query"
    assert step["extra_info"]["timestamp"] > 0


def test_empty_parts_of_a_step_are_left_out() -> None:
    step = kit.create_dialogue_step("hm", [], "", "q", 1)
    assert step["completion"]["message"] == {"think": "hm"}
    assert step["completion"]["content"] == "<think>hm</think>"


def test_the_modules_import_under_the_names_that_agents_use() -> None:
    code = (
        "import sys; sys.path[:0] = [sys.argv[1]];"
        "from src.agent.agent_interface import Tool, register_tool, get_tool, ToolCallResult;"
        "from src.agent.agent_interface import execute_tool_call, create_dialogue_step;"
        "from src.agent.agent_interface import generate_tool_call_id, _TOOL_REGISTRY;"
        "from src.agent.proxy_client import ProxyClient;"
        "from arena_client import ArenaClient;"
        "print(sorted(m for m in sys.modules if m.startswith(('sandbox', 'scoring'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(KIT)], capture_output=True, text=True, check=True, cwd="/"
    )
    assert done.stdout.strip() == "[]"
