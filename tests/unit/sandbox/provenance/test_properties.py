"""What must hold for any run, however strange."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sandbox.provenance import decide_axis
from sandbox.trace import LlmEvent, ToolEvent, Trace
from scoring.types import JsonObject
from tests.unit.sandbox.provenance.test_calls import ANYTHING
from tests.unit.sandbox.provenance.traces import TraceBuilder, call, listing, tagged

CALLS: list[JsonObject] = [
    call("find_product", q="canvas bag"),
    call("find_product", q="canvas bag", page=2),
    call("find_product", q="linen", shop_id="7", service="COD"),
    call("view_product_information", product_ids="1"),
    call("view_product_information", product_ids="1,2"),
    call("check_product_match", product_id="1", requirements='{"a": "b"}'),
    call("calculate_voucher", product_prices="1,2"),
]
BATCHES = st.lists(st.lists(st.sampled_from(CALLS), min_size=1, max_size=5), max_size=4)


def run(
    emitted: list[list[JsonObject]], dispatched: list[list[JsonObject]], *, code: int = 0
) -> Trace:
    """Batches emitted and dispatched turn by turn; `code` dispatches more at the end."""
    build = TraceBuilder()
    prompt: list[JsonObject] = [{"role": "user", "content": "A query."}]
    for emits, dispatches in zip(emitted, dispatched, strict=True):
        turn = tagged(f"A thought, number {len(prompt)}.", *emits)
        build.llm(prompt, turn)
        prompt = [*prompt, {"role": "assistant", "content": turn}]
        for made in dispatches:
            build.dispatch(made, listing(1, 2))
    for n in range(code):
        build.dispatch(call("find_product", q=f"made by code {n}"), listing(1, 2))
    return build.trace


@given(BATCHES, st.randoms(use_true_random=False))
def test_the_order_within_a_batch_is_free(batches: list[list[JsonObject]], random: Any) -> None:
    emitted = [random.sample(batch, len(batch)) for batch in batches]
    dispatched = [random.sample(batch, len(batch)) for batch in batches]
    one = decide_axis(run(batches, batches), ())
    other = decide_axis(run(emitted, dispatched), ())
    assert (one.axis, one.matched) == (other.axis, other.matched)
    assert one.matched == one.dispatched


@given(BATCHES, BATCHES, st.integers(1, 3))
def test_a_dispatch_made_by_code_never_makes_a_run_agentic(
    emitted: list[list[JsonObject]], dispatched: list[list[JsonObject]], code: int
) -> None:
    n = min(len(emitted), len(dispatched))
    before = decide_axis(run(emitted[:n], dispatched[:n]), ())
    after = decide_axis(run(emitted[:n], dispatched[:n], code=code), ())
    assert after.axis == "B"
    assert after.matched == before.matched
    assert after.matched + after.covered + len(after.unmatched) == after.dispatched
    assert 0.0 <= after.agentic_ratio <= 1.0


@given(BATCHES, BATCHES)
def test_no_more_is_matched_than_was_emitted(
    emitted: list[list[JsonObject]], dispatched: list[list[JsonObject]]
) -> None:
    n = min(len(emitted), len(dispatched))
    found = decide_axis(run(emitted[:n], dispatched[:n]), ())
    assert found.matched <= found.emitted == sum(len(b) for b in emitted[:n])
    assert (found.axis == "A") == (not found.reasons)


ANSWER = st.dictionaries(st.sampled_from(["content", "tool_calls"]), ANYTHING)
LLM = st.builds(
    LlmEvent,
    seq=st.integers(0, 5),
    started_ms=st.floats(),
    elapsed_ms=st.floats(),
    waited_ms=st.just(0.0),
    model=st.just("m"),
    server=st.just("s"),
    standin=st.booleans(),
    prompt=st.lists(st.integers(-2, 6), max_size=5).map(tuple),
    params=st.dictionaries(st.sampled_from(["tools", "tool_choice", "response_format"]), ANYTHING),
    status=st.sampled_from([200, 200, 500]),
    choices=st.lists(st.fixed_dictionaries({"message": ANSWER}) | ANYTHING, max_size=3).map(tuple),
)
TOOL = st.builds(
    ToolEvent,
    seq=st.integers(0, 5),
    started_ms=st.floats(),
    elapsed_ms=st.just(1.0),
    via=st.sampled_from(["search", "tools"]),
    name=st.sampled_from([str(c["name"]) for c in CALLS] + ["other", "recommend_product"]),
    arguments=st.dictionaries(st.sampled_from(["q", "product_ids", "product_id"]), ANYTHING),
    status=st.sampled_from([200, 429]),
    result=ANYTHING,
)


MESSAGE = st.dictionaries(st.sampled_from(["role", "content", "tool_calls"]), ANYTHING)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(MESSAGE | ANYTHING, max_size=5),
    st.lists(LLM | TOOL, max_size=6),
    ANYTHING,
    st.none() | st.binary(max_size=40),
)
def test_no_content_makes_it_raise(
    messages: Any, events: Any, dialogue: Any, source: bytes | None
) -> None:
    found = decide_axis(Trace(tuple(messages), tuple(events)), dialogue, source)
    assert found.axis in ("A", "B")
    json.dumps(found.to_json())


def test_a_verdict_does_not_depend_on_how_ends_and_starts_are_rounded() -> None:
    trace = run([[CALLS[0]]], [[CALLS[0]]])
    llm, tool = trace.events
    early = replace(tool, started_ms=llm.started_ms + llm.elapsed_ms - 1.0)
    assert decide_axis(replace(trace, events=(llm, early)), ()).axis == "A"
    before = replace(tool, started_ms=llm.started_ms)
    assert decide_axis(replace(trace, events=(llm, before)), ()).axis == "B"
