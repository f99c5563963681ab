from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.provenance.calls import normalise
from scoring.exceptions import ErrorInfo, Fault
from scoring.outcome import Axes, Outcome, Reason
from scoring.types import Bucket, JsonObject, PriceBand, Problem, Product, Reward
from training.exceptions import RewardError
from training.rewards.progress import potentials, turn_rewards
from training.rewards.scoring import (
    OutcomeReward,
    ToolMatchReward,
    TurnLevelReward,
    read_teachers,
)
from training.rewards.steps import shown_ids, steps_of
from training.rewards.tool_match import call_similarity, tool_match
from training.types import Stop, Trajectory, Turn


def call(name: str, **arguments: Any) -> JsonObject:
    return {
        "id": "c",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def says(*calls: JsonObject) -> JsonObject:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), "tool_call_id": None}


def answers(value: Any) -> JsonObject:
    return {"role": "tool", "content": json.dumps(value), "tool_calls": None}


def outcome(success: bool) -> Outcome:
    reason = None if success else Reason.PRICE
    return Outcome(Bucket.PRODUCT, success, reason, success, Axes())


def rollout(
    *messages: JsonObject, success: bool | None = False, turns: int | None = None
) -> Trajectory:
    spoken = sum(m["role"] == "assistant" for m in messages) if turns is None else turns
    return Trajectory(
        problem_id="p",
        bucket=Bucket.PRODUCT,
        cluster="c",
        turns=tuple(Turn((1,), (2,), (-0.5,), Stop.END) for _ in range(spoken)),
        segments=(),
        messages=messages,
        outcome=None if success is None else outcome(success),
        error=ErrorInfo("x", Fault.VALIDATOR, "down") if success is None else None,
    )


FIND = call("find_product", q="red mug", page=1)
VIEW = call("view_product_information", product_ids="1,2")
RECOMMEND = call("recommend_product", product_ids="1")


def test_strict_success_alone() -> None:
    assert OutcomeReward()(rollout(says(FIND), success=True)).total == 1
    assert OutcomeReward()(rollout(says(FIND), success=False)).total == 0


def test_a_rollout_without_an_outcome_has_no_reward() -> None:
    with pytest.raises(RewardError, match="no outcome"):
        OutcomeReward()(rollout(says(FIND), success=None))


def test_similarity_of_two_calls_is_worked_out_by_hand() -> None:
    find = normalise("find_product", {"q": "red mug", "price": "0-10"})
    assert call_similarity(find, normalise("find_product", {"price": "0-10", "q": "red mug"})) == 1
    # The tool and the price agree, of tool, price and q.
    other = normalise("find_product", {"q": "blue mug", "price": "0-10"})
    assert call_similarity(find, other) == pytest.approx(2 / 3)
    assert call_similarity(find, normalise("terminate", {"status": "failure"})) == 0
    # Defaults say nothing.
    paged = normalise("find_product", {"q": "red mug", "price": "0-10", "page": 1})
    assert call_similarity(find, paged) == 1
    assert call_similarity(normalise("x", None), normalise("x", None)) == 0.5


def test_the_match_is_twice_what_is_shared_over_what_both_have() -> None:
    mine = steps_of([says(FIND), says(RECOMMEND)])
    teacher = steps_of([says(FIND, VIEW), says(RECOMMEND)])
    assert tool_match(mine, teacher) == pytest.approx(2 * 2 / (2 + 3))
    assert tool_match(mine, mine) == 1
    assert tool_match([], teacher) == 0


def test_making_every_call_there_is_earns_less() -> None:
    teacher = steps_of([says(FIND)])
    assert tool_match(steps_of([says(FIND, FIND, FIND)]), teacher) == pytest.approx(0.5)


CALLS = st.lists(
    st.sampled_from([FIND, VIEW, RECOMMEND, call("find_product", q="blue mug")]), max_size=6
)


@given(CALLS, CALLS)
def test_the_match_is_a_share_and_the_same_both_ways(
    one: list[JsonObject], other: list[JsonObject]
) -> None:
    a, b = steps_of([says(*one)]), steps_of([says(*other)])
    assert 0 <= tool_match(a, b) <= 1 + 1e-12
    assert tool_match(a, b) == pytest.approx(tool_match(b, a))


def test_the_teachers_match_is_added_by_its_weight() -> None:
    rows: list[JsonObject] = [
        {"problem_id": "p", "success": True, "messages": [says(FIND, VIEW), says(RECOMMEND)]},
        {"problem_id": "p", "success": False, "messages": [says(RECOMMEND)]},
    ]
    reward = ToolMatchReward(read_teachers(rows), 0.5)
    assert reward(rollout(says(FIND), says(RECOMMEND), success=True)).total == pytest.approx(1.4)
    assert reward(rollout(says(RECOMMEND), success=False)).total == pytest.approx(0.25)
    other = ToolMatchReward({}, 0.5)
    assert other(rollout(says(FIND), success=True)).total == 1


def test_a_teacher_who_never_succeeded_is_said() -> None:
    with pytest.raises(RewardError, match="no trajectory of a teacher"):
        read_teachers([{"problem_id": "p", "success": False, "messages": []}])


class Shelf:
    """A catalogue of products by price."""

    def __init__(self, **prices: float) -> None:
        self._products = {
            name: Product(name, "7", f"mug {name}", price, service=("COD",) if price < 20 else ())
            for name, price in prices.items()
        }

    def products(self, product_ids: Sequence[str]) -> dict[str, Product]:
        return {i: self._products[i] for i in product_ids if i in self._products}


SHELF = Shelf(a=10, b=15, c=100)
# Two constraints: a price of at most 12, and COD. a meets both, b one, c none.
PROBLEM = Problem(
    "p",
    "a cheap mug",
    Bucket.PRODUCT,
    (Reward("none of them", price=(PriceBand(None, 12),), service=("COD",)),),
)


def test_a_turn_is_credited_with_what_it_brought_to_light() -> None:
    steps = steps_of(
        [
            says(FIND),
            answers([{"product_id": "c"}]),
            says(FIND),
            answers([{"product_id": "b"}, {"product_id": "c"}]),
            says(FIND),
            answers({"products": [{"product_id": "a"}]}),
            says(FIND),
            answers([{"product_id": "a"}]),
            says(RECOMMEND),
        ]
    )
    assert potentials(PROBLEM, steps, SHELF) == [0, 0.5, 1, 1, 1]
    assert turn_rewards(PROBLEM, steps, SHELF) == [0, 0.5, 0.5, 0, 0]


def test_a_refused_call_costs_its_turn() -> None:
    steps = steps_of([says(FIND), answers({"error": "no"}), answers({"error": "no"})])
    assert turn_rewards(PROBLEM, steps, SHELF) == [pytest.approx(-0.05)]


def test_credit_sums_to_at_most_one() -> None:
    turns = [says(FIND), answers([{"product_id": x} for x in "abc"])] * 4
    assert sum(turn_rewards(PROBLEM, steps_of(turns), SHELF)) == 1


def test_every_turn_has_a_credit_even_one_that_was_cut_off() -> None:
    reward = TurnLevelReward({"p": PROBLEM}, SHELF)
    one = rollout(says(FIND), answers([{"product_id": "b"}]), success=False, turns=2)
    assert reward(one).turns == (0.5, 0.0)
    with pytest.raises(RewardError, match="not at hand"):
        TurnLevelReward({}, SHELF)(one)


def test_results_that_are_no_json_or_nested_beyond_reason_are_read() -> None:
    deep: Any = {"product_id": "z"}
    for _ in range(100):
        deep = [deep]
    assert list(shown_ids(deep)) == []
    assert list(shown_ids([{"product_id": 5}, {"product_id": True}, "x"])) == ["5"]
    steps = steps_of([says(FIND), {"role": "tool", "content": "not json"}])
    assert steps[0].results == ("not json",)
