"""Whole runs, shaped like those of real agents, and the axis each of them gets."""

from __future__ import annotations

import json

import pytest

from sandbox.provenance import DictationKind, Provenance, Reason, decide_axis
from sandbox.trace import Trace
from scoring.types import Json, JsonObject
from tests.unit.sandbox.provenance.traces import (
    AGENT_SOURCE,
    QUERY,
    SYSTEM,
    TagAgent,
    TraceBuilder,
    call,
    listing,
    native,
    step,
    tagged,
)

SPECS = json.dumps([{"q": "Blue canvas backpack", "service": "COD"}, {"q": "canvas pencil case"}])


def decide(build: TraceBuilder, *dialogue: JsonObject) -> Provenance:
    return decide_axis(build.trace, dialogue, AGENT_SOURCE, query=QUERY)


def default_agent() -> tuple[TraceBuilder, TagAgent]:
    """Searches, checks, views over the wire; helper tools run in its own code."""
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Search for what is asked.", call("find_product", q="men's canvas backpack", page=1))
    build.wire("find_product", listing(11, 12), q="men's canvas backpack", page=1)
    agent.observe(listing(11, 12))
    requirements = json.dumps({"color": "blue", "material": "canvas"})
    agent.ask(
        "11 and 12 both fit; 11 is cheaper, so compare it in detail.",
        call("check_product_match", product_id="11", requirements=requirements),
        call("view_product_information", product_ids="11,12"),
    )
    build.wire("view_product_information", [{"product_id": "11"}], product_ids="11")
    build.wire("view_product_information", [{"product_id": "11"}], product_ids="11,12")
    agent.observe({"matched": True}, [{"product_id": "11"}])
    return build, agent


def recommend(agent: TagAgent, ids: str = "11") -> JsonObject:
    agent.ask("11 matches in colour and material.", call("recommend_product", product_ids=ids))
    return step("11 matches", call("recommend_product", product_ids=ids))


def test_the_real_default_agent_is_a() -> None:
    build, agent = default_agent()
    said = recommend(agent)
    found = decide(build, said)
    assert found.axis == "A"
    assert found.reasons == ()
    assert (found.matched, found.covered, found.dispatched) == (3, 1, 4)
    assert found.agentic_ratio == 1.0


def test_its_recommendation_made_by_code_is_b() -> None:
    build, _ = default_agent()
    found = decide(build, step("time is up", call("recommend_product", product_ids="11")))
    assert found.axis == "B"
    assert Reason.RECOMMENDATION in found.reasons
    assert [u.seq for u in found.unmatched] == [None]


def test_a_recommendation_changed_by_code_is_b() -> None:
    build, agent = default_agent()
    recommend(agent)
    found = decide(build, step("better", call("recommend_product", product_ids="12")))
    assert found.reasons == (Reason.UNMATCHED, Reason.RECOMMENDATION)


def test_the_gateways_recommendation_counts_before_the_dialogues() -> None:
    build, agent = default_agent()
    recommend(agent)
    build.tool("recommend_product", "ok", product_ids="11")
    assert decide(build, step("", call("recommend_product", product_ids="99"))).axis == "A"


def test_a_deterministic_pipeline_is_b() -> None:
    build = TraceBuilder()
    build.llm([{"role": "user", "content": f"Classify: {QUERY}"}], "product")
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    build.llm([{"role": "user", "content": "Explain why 11 fits"}], "It is blue.")
    found = decide(build, step("It is blue.", call("recommend_product", product_ids="11")))
    assert found.axis == "B"
    assert found.matched == 0
    assert found.agentic_ratio == 0.0
    assert [u.seq for u in found.unmatched] == [1, None]


def test_a_decoy_completion_pays_for_nothing_else() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Look around.", call("find_product", q="anything"))
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    said = recommend(agent)
    found = decide(build, said)
    assert found.axis == "B"
    assert found.matched == 1


def test_no_tools_at_all_is_b() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    found = decide(build, recommend(agent))
    assert found.reasons == (Reason.NO_RETRIEVAL,)


def test_an_empty_trace_is_b() -> None:
    assert decide_axis(Trace(), None, None).reasons == (Reason.EMPTY,)


def test_one_emission_pays_one_dispatch() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Search.", call("find_product", q="canvas"))
    build.wire("find_product", listing(11), q="canvas", page=1)
    build.wire("find_product", listing(11), q="canvas", page=1)
    found = decide(build, recommend(agent))
    assert (found.matched, [u.seq for u in found.unmatched]) == (2, [2])


def test_a_completion_replayed_after_its_turn_pays_nothing() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    first = call("find_product", q="canvas")
    agent.ask("Search for canvas bags first.", first, call("find_product", q="linen"))
    build.wire("find_product", listing(11), q="canvas", page=1)
    agent.observe(listing(11))
    said = recommend(agent)
    build.wire("find_product", listing(12), q="linen", page=1)
    found = decide(build, said)
    assert [u.seq for u in found.unmatched] == [3]


def test_an_order_to_repeat_a_call_dictates_it() -> None:
    build = TraceBuilder()
    wanted = json.dumps([call("find_product", q="blue canvas backpack")])
    order: JsonObject = {
        "role": "user",
        "content": f"Reply with exactly <tool_call>{wanted}</tool_call>",
    }
    build.llm([order], f"<tool_call>{wanted}</tool_call>")
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    found = decide(build)
    assert found.axis == "B"
    assert [(d.seq, d.kind) for d in found.dictated] == [(0, DictationKind.PROMPT)]


@pytest.mark.parametrize(
    "order",
    [
        "Now use find_product to look for the blue canvas backpack.",
        "Call find_product(q='blue canvas backpack', page=1)",
        'Next: find_product {\\"q\\": \\"blue canvas backpack\\"}',
        "GET /search/find_product?q=blue%20canvas%20backpack&page=1",
        "search: blue canvas backpack; tool: find_product",
        "CALL FIND_PRODUCT WITH BLUE CANVAS BACKPACK",
        "Call find\u200b_product with bl\u00adue can\u2060vas back\ufeffpack",
        "Call ｆｉｎｄ_product with ｂｌｕｅ canvas backpack",
    ],
)
def test_dictation_is_seen_in_many_forms(order: str) -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"{QUERY}\n{order}"},
    ]
    build.llm(prompt, tagged("As told.", call("find_product", q="blue canvas backpack")))
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    assert Reason.DICTATED in decide(build).reasons


@pytest.mark.parametrize("field", ["reasoning_content", "name", "hint"])
def test_dictation_is_seen_in_every_field_of_a_message(field: str) -> None:
    build = TraceBuilder()
    order = "Call find_product with q=blue canvas backpack"
    prompt: list[JsonObject] = [
        {"role": "user", "content": QUERY},
        {"role": "assistant", "content": "", field: [order] if field == "hint" else order},
    ]
    build.llm(prompt, tagged("As told.", call("find_product", q="blue canvas backpack")))
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    assert Reason.DICTATED in decide(build).reasons


def test_thinking_that_is_sent_back_is_no_dictation() -> None:
    build = TraceBuilder()
    thought = "I shall use find_product to look for a blue canvas backpack."
    asked: JsonObject = {"role": "user", "content": QUERY}
    said: JsonObject = {"role": "assistant", "content": "Well.", "reasoning_content": thought}
    build.llm([asked], said)
    build.llm([asked, said], tagged("So.", call("find_product", q="blue canvas backpack")))
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    assert decide(build).axis == "A"


def test_the_query_beside_a_tools_name_is_no_dictation() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [
        {"role": "user", "content": f"Start with find_product. Query: {QUERY}"}
    ]
    build.llm(prompt, tagged("Search.", call("find_product", q="blue canvas backpack")))
    build.wire("find_product", listing(11), q="blue canvas backpack", page=1)
    assert decide(build).axis == "A"


def test_the_query_as_the_argument_of_a_written_call_is_dictation() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": f"Call find_product with q={QUERY!r}."}]
    build.llm(prompt, tagged("As told.", call("find_product", q=QUERY)))
    build.wire("find_product", listing(11), q=QUERY, page=1)
    assert Reason.DICTATED in decide(build).reasons


def test_an_example_in_the_agents_own_source_is_no_dictation() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "system", "content": SYSTEM}]
    build.llm(prompt, tagged("Like the example.", call("find_product", q="red running shoes")))
    build.wire("find_product", listing(11), q="red running shoes", page=1)
    assert decide(build).axis == "A"
    assert decide_axis(build.trace, (), b"pass").axis == "B"


def test_choosing_from_a_list_of_results_is_no_dictation() -> None:
    build, agent = default_agent()
    text = "Answer with recommend_product. Candidates: 11 - Canvas bag, 12 - Blue bag"
    build.llm(
        [{"role": "user", "content": text}],
        tagged("The first.", call("recommend_product", product_ids="11")),
    )
    del agent
    assert decide(build, step("", call("recommend_product", product_ids="11"))).axis == "A"


def test_naming_the_one_product_to_recommend_is_dictation() -> None:
    build, _ = default_agent()
    text = "Candidates: 11, 12. Call recommend_product with product_ids 12 now."
    build.llm(
        [{"role": "user", "content": text}],
        tagged("As told.", call("recommend_product", product_ids="12")),
    )
    found = decide(build, step("", call("recommend_product", product_ids="12")))
    assert Reason.DICTATED in found.reasons


@pytest.mark.parametrize("page", [1, 2])
def test_a_call_of_the_models_own_told_again_in_prose_is_no_dictation(page: int) -> None:
    build = TraceBuilder()
    first = native("Search for canvas things.", call("find_product", q="canvas bag", page=1))
    build.llm([{"role": "user", "content": QUERY}], first)
    build.tool("find_product", listing(11), q="canvas bag", page=1)
    told = f"{QUERY}\nYou have called find_product with q canvas bag already. Go on."
    again = native("Look further.", call("find_product", q="canvas bag", page=page))
    build.llm([{"role": "user", "content": told}], again)
    build.tool("find_product", listing(12), q="canvas bag", page=page)
    assert decide(build).axis == "A"


def test_a_plan_of_the_models_own_is_no_dictation() -> None:
    build = TraceBuilder()
    plan = "Plan: use find_product to look for a linen satchel."
    build.llm([{"role": "user", "content": f"Make a plan. {QUERY}"}], plan)
    build.llm(
        [{"role": "user", "content": f"{QUERY}\nThe plan was: {plan}"}],
        native(None, call("find_product", q="linen satchel")),
    )
    build.tool("find_product", listing(12), q="linen satchel")
    assert decide(build).axis == "A"


def tool_schema(name: str, **properties: Json) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


@pytest.mark.parametrize(
    "limit", [{"const": "blue canvas backpack"}, {"enum": ["blue canvas backpack", "x"]}]
)
def test_a_schema_that_leaves_no_other_value_forces(limit: JsonObject) -> None:
    build = TraceBuilder()
    asked = call("find_product", q="blue canvas backpack")
    build.llm(
        [{"role": "user", "content": QUERY}],
        native(None, asked),
        tools=[tool_schema("find_product", q={"type": "string", **limit})],
    )
    build.tool("find_product", listing(11), q="blue canvas backpack")
    assert [d.kind for d in decide(build).dictated] == [DictationKind.SCHEMA]


def test_a_forced_tool_choice_forces() -> None:
    build = TraceBuilder()
    build.llm(
        [{"role": "user", "content": QUERY}],
        native(None, call("find_product", q="backpack")),
        tools=[tool_schema("find_product", q={"type": "string"}), tool_schema("terminate")],
        tool_choice={"type": "function", "function": {"name": "find_product"}},
    )
    build.tool("find_product", listing(11), q="backpack")
    assert [d.kind for d in decide(build).dictated] == [DictationKind.TOOL_CHOICE]


def test_an_enum_of_options_and_a_free_choice_of_tools_force_nothing() -> None:
    build = TraceBuilder()
    sort: Json = {"enum": ["priceasc", "pricedesc", "order", "default"]}
    build.llm(
        [{"role": "user", "content": QUERY}],
        native(None, call("find_product", q="backpack", sort="priceasc")),
        tools=[tool_schema("find_product", q={}, sort=sort), tool_schema("terminate")],
        tool_choice="required",
    )
    build.tool("find_product", listing(11), q="backpack", sort="priceasc")
    assert decide(build).axis == "A"


FIND = call("find_product", q="blue canvas backpack")


def react_native() -> TraceBuilder:
    build = TraceBuilder()
    messages: list[JsonObject] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUERY},
    ]
    turns = [
        ("Search in two ways.", [FIND, call("find_product", q="canvas bag", sort="priceasc")]),
        (None, [call("view_product_information", product_ids=["11", "12"])]),
        ("11 it is.", [call("recommend_product", product_ids="11")]),
        (None, [call("terminate", status="success")]),
    ]
    for content, calls in turns:
        message = native(content, *calls)
        build.llm(messages, message)
        messages.append(message)
        for n, made in enumerate(calls):
            build.dispatch(made, listing(11, 12))
            text = json.dumps(listing(11, 12))
            messages.append({"role": "tool", "tool_call_id": f"call_{n}", "content": text})
    return build


def test_a_react_agent_with_native_calls_is_a() -> None:
    found = decide(react_native())
    assert (found.axis, found.matched, found.dispatched, found.emitted) == ("A", 5, 5, 5)


def test_a_same_shop_tool_run_in_code_covers_a_dozen_searches() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Both from one shop.", call("find_products_in_same_shop", product_queries=SPECS))
    found_first: Json = [{"product_id": str(i), "shop_id": f"s{i}"} for i in range(5)]
    build.wire("find_product", found_first, q="Blue canvas backpack", page=1, service="COD")
    for shop in range(5):
        for words in ("canvas pencil case", "canvas pencil", "canvas"):
            build.wire("find_product", [], q=words, page=1, shop_id=f"s{shop}")
    found = decide(build, recommend(agent))
    assert (found.axis, found.covered, found.matched) == ("A", 16, 1)


@pytest.mark.parametrize(
    "strange",
    [
        {"q": "pencil case"},  # no prefix
        {"q": "canvas pencil", "shop_id": "s9"},  # a shop that it did not return
        {"q": "canvas pencil", "price": "0-10"},  # a filter of the code's own
        {"q": "canvas pencil", "sort": "priceasc"},
    ],
)
def test_a_same_shop_tool_covers_nothing_else(strange: JsonObject) -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Both from one shop.", call("find_products_in_same_shop", product_queries=SPECS))
    build.wire("find_product", listing(1, shop="s1"), q="Blue canvas backpack", page=1)
    build.dispatch(call("find_product", **strange), [])
    assert [u.seq for u in decide(build, recommend(agent)).unmatched] == [2]


def test_a_dispatched_same_shop_tool_covers_no_searches_besides() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Both from one shop.", call("find_products_in_same_shop", product_queries=SPECS))
    build.tool("find_products_in_same_shop", {"found": True}, product_queries=SPECS)
    build.wire("find_product", listing(1), q="Blue canvas backpack", page=1)
    assert [u.seq for u in decide(build, recommend(agent)).unmatched] == [2]


def test_a_search_without_results_in_a_shop_is_widened_at_no_cost() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("In this shop.", call("find_product", q="a b c", shop_id="7", service="COD"))
    build.wire("find_product", [], q="a b c", page=1, shop_id="7", service="COD")
    build.wire("find_product", [], q="a b c", page=1, shop_id="7")
    build.wire("find_product", listing(11), q="a b", page=1, shop_id="7")
    found = decide(build, recommend(agent))
    assert (found.axis, found.covered) == ("A", 2)


@pytest.mark.parametrize(
    ("first", "shop"), [(listing(11), "7"), ([], None)], ids=["it found something", "no shop"]
)
def test_a_search_is_not_widened_for_nothing(first: Json, shop: Json) -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Search.", call("find_product", q="a b c", shop_id=shop))
    build.wire("find_product", first, q="a b c", page=1, shop_id=shop)
    build.wire("find_product", listing(11), q="a b", page=1, shop_id=shop)
    assert [u.seq for u in decide(build, recommend(agent)).unmatched] == [2]


def test_voucher_arithmetic_in_code_needs_no_event() -> None:
    build, agent = default_agent()
    agent.ask(
        "Does the voucher apply?",
        call("calculate_voucher", product_prices="99,50", voucher_type="fixed"),
    )
    agent.observe({"total_after": 120})
    assert decide(build, recommend(agent)).axis == "A"


def test_a_request_repeated_after_a_failure_is_one_dispatch() -> None:
    build = TraceBuilder()
    agent = TagAgent(build)
    agent.ask("Search.", call("find_product", q="canvas"))
    for status in (503, 429, 200):
        build.wire("find_product", listing(11), status=status, q="canvas", page=1)
    found = decide(build, recommend(agent))
    assert (found.axis, found.dispatched, found.matched) == ("A", 2, 2)


def test_a_failed_model_call_emits_nothing() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": QUERY}]
    build.llm(prompt, tagged("Search.", call("find_product", q="canvas")), status=500)
    build.wire("find_product", listing(11), q="canvas", page=1)
    assert decide(build).axis == "B"


def test_every_choice_emits() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": QUERY}]
    answers = [tagged("One way.", call("find_product", q=q)) for q in ("canvas", "linen")]
    build.llm(prompt, *answers, n=2)
    build.wire("find_product", listing(11), q="linen", page=1)
    build.wire("find_product", listing(11), q="canvas", page=1)
    assert decide(build).axis == "A"


def test_branches_of_one_prompt_expire_each_for_itself() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": QUERY}]
    one = native("The first way of looking.", call("find_product", q="canvas"))
    two = native("Another way of looking.", call("find_product", q="linen"))
    build.llm(prompt, one)
    build.llm(prompt, two)
    build.tool("find_product", listing(11), q="canvas")
    build.llm([*prompt, one, {"role": "tool", "content": "[]"}], native("Hm."))
    build.tool("find_product", listing(11), q="linen")
    assert decide(build).axis == "A"


def test_a_rewritten_turn_extends_the_conversation_too() -> None:
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": QUERY}]
    build.llm(prompt, native("Search in some way.", call("find_product", q="canvas")))
    build.llm([*prompt, {"role": "assistant", "content": "Something else."}], native("Hm."))
    build.tool("find_product", listing(11), q="canvas")
    assert decide(build).axis == "B"


def test_a_tool_offered_by_the_miner_is_b_and_a_hallucinated_one_is_not() -> None:
    build, agent = default_agent()
    agent.ask("Perhaps there is one.", call("rank_candidates", product_ids="11,12"))
    said = recommend(agent)
    assert decide(build, said).axis == "A"
    build.llm(
        [{"role": "system", "content": "Tools: `rank_best` ranks products."}],
        tagged("Rank.", call("rank_best", product_ids="11,12")),
    )
    assert decide(build, said).reasons == (Reason.INVENTED_TOOL,)


def test_an_invented_tool_in_the_dialogue_is_b() -> None:
    build, agent = default_agent()
    found = decide(build, step("", call("smart_rank", product_ids="11")), recommend(agent))
    assert found.reasons == (Reason.INVENTED_TOOL,)


def test_a_verdict_is_json() -> None:
    build, _ = default_agent()
    found = decide(build, step("", call("recommend_product", product_ids="11")))
    shown = found.to_json()
    assert json.loads(json.dumps(shown)) == shown
    assert shown["unmatched"] == [{"seq": None, "name": "recommend_product"}]
