"""Both formats of a conversation read alike, and a shopper answers them alike."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sandbox.catalog.interface import Catalog
from sandbox.standin.conversation import Exchange, read_conversation
from sandbox.standin.moves import Call, Move
from sandbox.standin.replay import DONE, next_move
from sandbox.standin.shopper import shopper_plan
from sandbox.standin.tagtext import write_calls
from sandbox.tools.registry import call_tool
from sandbox.tools.schemas import TOOL_SCHEMAS
from scoring.types import Json, JsonObject
from tests.unit.sandbox.standin.market import market

QUERY = "Show me a green ceramic teapot with lid made of clay"
SYSTEM: JsonObject = {"role": "system", "content": "Answer with <tool_call> and <think>."}
Course = list[tuple[Move, tuple[Json, ...]]]


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with market(tmp_path_factory.mktemp("market")) as catalog:
        yield catalog


def native(query: str, course: Course) -> list[JsonObject]:
    """A course as native messages; arguments are JSON text, answers JSON text."""
    messages: list[JsonObject] = [{"role": "user", "content": query}]
    for turn, (move, answers) in enumerate(course):
        calls: list[Json] = [
            {
                "id": f"{turn}-{n}",
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
            }
            for n, c in enumerate(move.calls)
        ]
        messages.append({"role": "assistant", "content": move.think, "tool_calls": calls})
        messages.extend(
            {"role": "tool", "tool_call_id": f"{turn}-{n}", "content": json.dumps(answer)}
            for n, answer in enumerate(answers)
        )
    return messages


def tagged(query: str, course: Course) -> list[JsonObject]:
    """A course as one user message of tag text."""
    parts = ["# Dialogue Records History", f"<user>{query}</user>"]
    for move, answers in course:
        observed = [{"tool_call_id": "its own", "results": answer} for answer in answers]
        parts += [
            f"<think>{move.think}</think>",
            f"<tool_call>{write_calls(move.calls)}</tool_call>",
            f"<obs>{json.dumps(observed)}</obs>",
        ]
    return [SYSTEM, {"role": "user", "content": "\n\n".join(parts)}]


def converse(query: str, catalog: Catalog, *, in_tags: bool) -> Course:
    """Let the shopper work through requests, one a turn, as a server sees them."""
    course: Course = []
    for _ in range(20):
        if in_tags:
            conversation = read_conversation(tagged(query, course), ())
        else:
            conversation = read_conversation(native(query, course), TOOL_SCHEMAS)
        move = next_move(shopper_plan(conversation.query), conversation)
        if move == DONE:
            return course
        answers = tuple(call_tool(c.name, c.arguments, catalog) for c in move.calls)
        course.append((move, answers))
    raise AssertionError("the shopper does not come to an end")


@pytest.mark.parametrize(
    "query",
    [
        QUERY,
        "Find a shop that sells both a bamboo tea whisk and a white ceramic teapot",
        "Show me a copper kettle for induction",
        "Show me a quixotic zeppelin",
    ],
)
def test_both_formats_lead_to_the_same_behaviour(query: str, goods: Catalog) -> None:
    assert converse(query, goods, in_tags=True) == converse(query, goods, in_tags=False)


def test_a_tag_history_gives_query_calls_and_answers() -> None:
    call = Call("find_product", {"q": "teapot"})
    conversation = read_conversation(tagged(QUERY, [(Move("look", (call,)), ([],))]), ())
    assert conversation.query == QUERY
    assert conversation.exchanges == (Exchange(call, True, []),)
    assert conversation.offered is None
    assert conversation.speaks_tags


def test_a_query_without_any_tags_is_the_user_text() -> None:
    conversation = read_conversation([SYSTEM, {"role": "user", "content": QUERY}], ())
    assert conversation.query == QUERY


def test_content_in_parts_is_read() -> None:
    parts: Json = [{"type": "text", "text": "a "}, {"type": "image_url"}, {"type": "text"}]
    conversation = read_conversation([{"role": "user", "content": parts}], ())
    assert conversation.query == "a"


def test_a_call_without_a_readable_answer_is_asked_twice_and_then_given_up() -> None:
    conversation = read_conversation([{"role": "user", "content": QUERY}], TOOL_SCHEMAS)
    first = next_move(shopper_plan(QUERY), conversation)
    lost: Course = [(first, ())]
    again = next_move(shopper_plan(QUERY), read_conversation(native(QUERY, lost), TOOL_SCHEMAS))
    assert again == first
    later = next_move(shopper_plan(QUERY), read_conversation(native(QUERY, lost * 2), TOOL_SCHEMAS))
    assert later != first


def test_an_error_in_place_of_an_answer_is_taken_as_nothing_found() -> None:
    conversation = read_conversation([{"role": "user", "content": QUERY}], TOOL_SCHEMAS)
    first = next_move(shopper_plan(QUERY), conversation)
    failed: Course = [(first, ("Error: connection refused",))]
    second = next_move(shopper_plan(QUERY), read_conversation(native(QUERY, failed), TOOL_SCHEMAS))
    assert second.calls
    assert second.calls != first.calls


def test_tools_that_are_not_offered_are_not_called(goods: Catalog) -> None:
    few = [t for t in TOOL_SCHEMAS if json.dumps(t).count('"find_product"')]
    course: Course = []
    for _ in range(8):
        conversation = read_conversation(native(QUERY, course), few)
        move = next_move(shopper_plan(QUERY), conversation)
        assert {c.name for c in move.calls} <= {"find_product"}
        if not move.calls:
            return
        course.append((move, tuple(call_tool(c.name, c.arguments, goods) for c in move.calls)))
    raise AssertionError("the shopper does not come to an end")


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "assistant", "tool_calls": [None, {"id": 1}, {"function": {"name": 3}}]}],
        [{"role": "user", "content": None}, {"role": "tool", "content": "{"}],
        [{"role": "user", "content": "<tool_call>[{]</tool_call><obs>[[[["}],
    ],
)
def test_malformed_messages_are_read_without_an_error(messages: list[JsonObject]) -> None:
    conversation = read_conversation(messages, ({"type": "function", "function": 3},))
    next_move(shopper_plan(conversation.query), conversation)
