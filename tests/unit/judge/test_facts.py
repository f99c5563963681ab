"""Facts are computed in code, and no judge may pass the ceiling that they set."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.facts import MAX_THINKING, read_facts
from judge.mentions import DatumKind
from judge.thinking import field_text
from judge.verdict import Gate
from sandbox.trace import Trace
from scoring.types import JsonObject
from tests.unit.judge.attacks import attacks
from tests.unit.judge.scenes import (
    AIMLESS,
    NAMING,
    QUERY,
    REASONED,
    VAGUE,
    Attack,
    Scene,
    call,
    goods,
    listing,
    shopping,
)

ATTACKS = attacks()


@pytest.mark.parametrize("case", ATTACKS, ids=[a.id for a in ATTACKS])
def test_the_ceiling_of_an_attack_is_at_its_bound_and_honesty_does_not_pay_for_it(
    case: Attack,
) -> None:
    ceiling = read_facts(case.trace, case.query, case.dialogue).ceiling
    assert case.least <= ceiling <= case.bound


@pytest.mark.parametrize(
    ("thought", "gate"),
    [
        (AIMLESS, Gate.REFERENCE),
        (VAGUE, Gate.DATUM),
        (NAMING, Gate.COMPARISON),
        (REASONED, Gate.PASSED),
    ],
)
def test_the_gates_of_the_tree(thought: str, gate: Gate) -> None:
    facts = read_facts(shopping(thought).trace, QUERY)
    assert (facts.gate, facts.ceiling) == (gate, gate.quality)


def test_below_thirty_tokens_nothing_is_inference() -> None:
    assert read_facts(shopping(REASONED, tokens=29).trace, QUERY).gate is Gate.INFERENCE
    assert read_facts(shopping(REASONED, tokens=30).trace, QUERY).gate is Gate.PASSED


def test_every_span_stands_where_it_says() -> None:
    trace = shopping(REASONED).trace
    facts = read_facts(trace, QUERY)
    spans = [s for step in facts.steps for s in (*step.data, *step.comparisons, *step.copied)]
    assert spans
    for span in spans:
        event = next(e for e in trace.events if e.seq == span.event)
        assert str(field_text(trace, event, span.field))[span.start : span.end] == span.quote


def deciding(thought: str, query: str = QUERY) -> set[tuple[DatumKind, str]]:
    trace = shopping(thought, query=query).trace
    step = max(read_facts(trace, query).steps, key=lambda s: len(s.data))
    return {(k, s.quote) for k, s in zip(step.kinds, step.data, strict=True)}


@pytest.mark.parametrize(
    ("thought", "datum"),
    [
        ("I take 48210357.", (DatumKind.PRODUCT, "48210357")),
        ("The Tramper Daypack it is.", (DatumKind.TITLE, "Tramper Daypack")),
        ("the one at 742.50 pesos", (DatumKind.PRICE, "742.50")),
        ("It costs ₱655 only.", (DatumKind.PRICE, "655")),
        ("It has ripstop nylon.", (DatumKind.VALUE, "ripstop nylon")),
        ("All from shop 5501 then.", (DatumKind.SHOP, "5501")),
    ],
)
def test_data_that_a_thought_can_name(thought: str, datum: tuple[DatumKind, str]) -> None:
    assert datum in deciding(thought)


@pytest.mark.parametrize(
    "thought",
    [
        "I take 4821\u200b0357.",
        "I take ４８２１０３５７.",
        "I take 48210357x.",
        "I take 1148210357.",
        "Тramper Dаypаck",
        "There are 655 hits and 389 pages.",
        "The canvas backpack with a laptop sleeve under 900 pesos.",
        "It is light and good, yes.",
    ],
)
def test_what_names_no_datum(thought: str) -> None:
    assert deciding(thought) == set()


def test_what_the_query_says_is_no_datum_of_a_result() -> None:
    thought = "I take 48210357 for 389.0 pesos."
    assert (DatumKind.PRICE, "389.0") in deciding(thought)
    assert (DatumKind.PRICE, "389.0") not in deciding(thought, QUERY + " for 389 pesos")


@pytest.mark.parametrize(
    "thought",
    [
        "Candidates: 48210357, 48210944, 48213308. I take the first because it is good.",
        "48210357 is one. 48210944 is two. Both are fine bags and so I go on.",
        "48210357 at 389 pesos is cheaper because 48210357 costs 389 pesos.",
        "48210357 (Nordvik Canvas Rucksack) costs 389 pesos, which is cheaper than most.",
        "I prefer the first one because it is cheaper than the second, 48210357.",
    ],
)
def test_naming_is_no_comparing(thought: str) -> None:
    assert read_facts(shopping(thought).trace, QUERY).gate is Gate.COMPARISON


@pytest.mark.parametrize(
    "thought",
    [
        "48210357 costs 389 while 48210944 costs 742.5 pesos.",
        "The Tramper Daypack exceeds nothing, but the Nordvik Canvas Rucksack is cheaper.",
        "The one at 389.0 beats the one at 742.5: lower price.",
        "Compare 48210357 and 48210944.\nThe latter is ripstop nylon, so it does not fit canvas.",
    ],
)
def test_comparing_takes_two_candidates_and_a_reason(thought: str) -> None:
    assert read_facts(shopping(thought).trace, QUERY).gate is Gate.PASSED


def test_candidates_of_different_steps_are_not_compared() -> None:
    scene = Scene()
    scene.turn("", (call("find_product", q="bag"), listing(goods())))
    scene.turn("48210357 costs 389 pesos, which is cheaper than I thought it would be.")
    scene.turn("48210944 costs 742.5 pesos, which is more than I thought it would be.")
    assert read_facts(scene.trace, QUERY).gate is Gate.COMPARISON


def test_the_facts_survive_their_json_and_are_bounded() -> None:
    scene = Scene()
    for _ in range(50):
        scene.turn(REASONED * 5, (call("find_product", q="bag"), listing(goods())))
    text = json.dumps(read_facts(scene.trace, QUERY).to_json())
    assert len(text) < 20_000
    assert json.loads(text)["completions"] == 50


def test_a_flood_of_thinking_is_read_up_to_a_bound() -> None:
    flood = "x" * MAX_THINKING
    trace = shopping(REASONED, opening=flood).trace
    assert read_facts(trace, QUERY).gate is not Gate.PASSED


def test_ten_megabytes_are_read() -> None:
    generator = random.Random(7)
    scene = Scene()
    products: list[JsonObject] = [
        {
            "product_id": str(10**9 + i),
            "title": f"Thing {i} of Canvas",
            "price": generator.randint(1, 9999) / 4,
            "description": "lorem ipsum " * 250,
        }
        for i in range(300)
    ]
    for turn in range(11):
        first, second = products[turn], products[turn + 1]
        thought = (
            f"{first['product_id']} at {first['price']} is cheaper than {second['product_id']} "
            f"at {second['price']}, so I look on."
        )
        scene.turn(thought if turn else "", (call("find_product", q="thing"), products))
    assert len(json.dumps(scene.trace.to_json())) > 10_000_000
    assert read_facts(scene.trace, QUERY).gate is Gate.PASSED


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["product_id", "title", "price", "shop_id", "attributes", "products"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=60)
@given(VALUES, VALUES, st.text(max_size=80))
def test_no_result_and_no_message_raises(result: object, message: object, thought: str) -> None:
    scene = Scene()
    scene.turn(thought, (call("find_product", q="x"), result))
    scene.turn(thought + " 10 because")
    strange: JsonObject = {"role": "assistant", "content": message}  # type: ignore[dict-item]
    scene.complete(strange, prompt=[strange])
    trace = scene.trace
    read_facts(trace, None, [message, result])
    read_facts(Trace(trace.messages[:1], trace.events), "q", None)
