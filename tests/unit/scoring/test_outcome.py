"""Strict success, and the one reason why a run has none."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.attempt import read_attempt
from scoring.dialogue import Action, Recommendation, Termination
from scoring.outcome import Axes, Outcome, Reason, score, scoring_pipeline_version
from scoring.titles import LexicalTitles, NoTitles
from scoring.types import Bucket, PriceBand, Problem, Product, Reward
from tests.unit.scoring.builders import (
    band,
    catalogue,
    dialogue,
    problem,
    product,
    recommend,
    reward,
    step,
    terminate,
    voucher,
)

SEVEN, EIGHT = Recommendation(("7",)), Recommendation(("8",))
DONE, GAVE_UP = Termination(True), Termination(False)


def outcome(
    steps: Any,
    *actions: Action,
    asked: Problem | None = None,
    completed: bool = True,
    products: tuple[Product, ...] = (product("7"), product("8")),
) -> Outcome:
    attempt = read_attempt(steps, actions=actions, completed=completed)
    return score(asked or problem(), attempt, catalogue(*products))


@pytest.mark.parametrize(
    ("steps", "actions", "reason"),
    [
        (dialogue("7"), (), None),
        ([step(recommend("7"), terminate())], (), None),
        ([step(terminate(), recommend("7"))], (), None),  # the same step
        # Copies on both sides are one recommendation.
        (dialogue("7"), (SEVEN, DONE), None),
        (dialogue(" 7 "), (SEVEN,), None),
        (dialogue(["7"]), (SEVEN, DONE), None),
        (None, (SEVEN, DONE), None),
        ([], (SEVEN, DONE), None),
        # One on each side.
        ([step(terminate())], (SEVEN,), None),
        ([step(recommend("7"))], (DONE,), None),
        ([], (), Reason.NO_RECOMMENDATION),
        ([step(terminate())], (), Reason.NO_RECOMMENDATION),
        (dialogue("7"), (EIGHT,), Reason.SEVERAL_RECOMMENDATIONS),
        ([step(recommend("8")), *dialogue("7")], (), Reason.SEVERAL_RECOMMENDATIONS),
        ([step(recommend("7")), *dialogue("7")], (), Reason.SEVERAL_RECOMMENDATIONS),
        ([step(recommend("7"))], (), Reason.NOT_TERMINATED),
        ([step(terminate()), step(recommend("7"))], (), Reason.NOT_TERMINATED),
        ([], (DONE, SEVEN), Reason.NOT_TERMINATED),
        (dialogue("7"), (DONE, SEVEN), Reason.NOT_TERMINATED),
        ([step(recommend("7")), step(terminate("failure"))], (), Reason.TERMINATED_AS_FAILURE),
        (dialogue("7"), (SEVEN, GAVE_UP), Reason.TERMINATED_AS_FAILURE),
        ([*dialogue("7"), step(terminate("failure"))], (), Reason.TERMINATED_AS_FAILURE),
        # One copy at the gateway does not account for two in the dialogue.
        ([step(recommend("7")), *dialogue("7")], (SEVEN, DONE), Reason.SEVERAL_RECOMMENDATIONS),
        (dialogue("7"), (SEVEN, SEVEN, DONE), Reason.SEVERAL_RECOMMENDATIONS),
        (dialogue("7,8"), (), Reason.WRONG_NUMBER_OF_PRODUCTS),
        (dialogue(""), (), Reason.WRONG_NUMBER_OF_PRODUCTS),
        (dialogue(7), (), Reason.WRONG_NUMBER_OF_PRODUCTS),
        (dialogue("999"), (), Reason.UNKNOWN_PRODUCT),
        (dialogue("7,7"), (), None),
        (dialogue("8"), (), Reason.NOT_THE_ANSWER),
    ],
)
def test_an_ending_has_one_verdict(
    steps: Any, actions: tuple[Action, ...], reason: Reason | None
) -> None:
    found = outcome(steps, *actions)
    assert found.reason is reason
    assert found.success is (reason is None)


def test_a_run_that_failed_is_no_success_of_either_kind_but_keeps_its_axes() -> None:
    found = outcome(dialogue("7"), completed=False)
    assert found.reason is Reason.RUN_FAILED
    assert not found.upstream_success
    assert found.recommended_ids == ("7",)
    assert found.upstream_scores["gt"] == 1.0


def test_upstream_forgives_what_strict_success_does_not() -> None:
    found = outcome([step(recommend("8")), step(recommend("7"))])
    assert found.upstream_success
    assert not found.success


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (reward(price=(band(20, None),)), Reason.PRICE),
        (reward(price=(band(10, 10),)), None),
        (reward(service=("COD",)), Reason.SERVICE),
        (reward(sku_options=({"size": "l"},)), None),
        (reward(sku_options=({"size": "m"},)), Reason.SKU_OR_ATTRIBUTE),
        (reward(attributes=({"brand": ("a", "b")},)), Reason.SKU_OR_ATTRIBUTE),
        (reward(attributes=({"brand": ("a",)},), sku_options=({"color": "red"},)), None),
        (reward(sku_options=({"size": "l", "color": "blue"},)), Reason.SKU_OR_ATTRIBUTE),
        # The first that fails is named.
        (reward(price=(band(20, None),), service=("COD",)), Reason.PRICE),
    ],
)
def test_another_product_succeeds_exactly_when_it_meets_every_constraint(
    wanted: Reward, reason: Reason | None
) -> None:
    other = product(
        "8",
        sku_options={"1": {"size": "l", "color": "red"}, "2": {"size": "s", "color": "blue"}},
        attributes={"brand": ("a",)},
    )
    found = outcome(dialogue("8"), asked=problem(wanted), products=(other,))
    assert found.reason is reason


def shop_problem() -> Problem:
    return problem(reward("7"), reward("8"), bucket=Bucket.SHOP)


def test_a_shop_problem_takes_products_of_one_shop_in_order() -> None:
    same = (product("7"), product("8"))
    assert outcome(dialogue("7,8"), asked=shop_problem(), products=same).success
    swapped = outcome(dialogue("8,7"), asked=shop_problem(), products=same)
    assert swapped.reason is Reason.NOT_THE_ANSWER
    apart = (product("7"), product("8", shop_id="2"))
    found = outcome(dialogue("7,8"), asked=shop_problem(), products=apart)
    assert found.reason is Reason.SHOP
    assert found.axes.shop == 0.0
    short = outcome(dialogue("7"), asked=shop_problem(), products=same)
    assert short.reason is Reason.WRONG_NUMBER_OF_PRODUCTS
    assert short.upstream_scores["product"] == 0.5


@pytest.mark.parametrize(
    ("terms", "same_shop", "affordable"),
    [
        (voucher(100), False, True),
        (voucher(70), False, True),
        (voucher(69), False, False),
        (voucher(70, threshold=101.0), False, False),
        (voucher(70, voucher_type="shop"), False, False),
        (voucher(70, voucher_type="shop"), True, True),
        (voucher(90, discount_type="percentage", discount=0.1, cap=500.0), False, True),
        (voucher(89, discount_type="percentage", discount=0.1, cap=500.0), False, False),
        (voucher(79, discount_type="percentage", discount=0.5, cap=20.0), False, False),
        (voucher(80, discount_type="percentage", discount=0.5, cap=20.0), False, True),
    ],
)
def test_the_budget_holds_with_or_without_the_voucher(
    terms: Any, same_shop: bool, affordable: bool
) -> None:
    asked = problem(reward("7"), reward("8"), bucket=Bucket.VOUCHER, voucher=terms)
    products = (
        product("7", price=60.0),
        product("8", price=40.0, shop_id="1" if same_shop else "2"),
    )
    found = outcome(dialogue("7,8"), asked=asked, products=products)
    assert found.success is affordable
    assert found.axes.budget == float(affordable)
    assert (found.reason is Reason.BUDGET) is not affordable


def test_axes_are_shares_over_stated_constraints_and_none_where_nothing_is_stated() -> None:
    first = reward("7", price=(band(5, 20),), service=("COD", "official"))
    second = reward("8", sku_options=({"size": "l"},))
    asked = problem(first, second, bucket=Bucket.SHOP)
    found = outcome(dialogue("9,999"), asked=asked, products=(product("9", service=("official",)),))
    assert found.axes == Axes(
        title=None,
        price=1.0,
        service=0.5,
        sku=0.0,
        attribute=None,
        sku_and_attribute=0.0,
        shop=0.0,
        budget=None,
    )


def test_titles_are_judged_only_by_a_similarity_and_the_answer_always_hits() -> None:
    asked = problem(reward("7", title=("red cotton hat",), price=(band(1, 20),)))
    close = product("8", title="Hat, RED cotton")
    far = product("9", title="garden hose")
    for found, reason, share in (
        (score(asked, read_attempt(dialogue("8")), catalogue(close), LexicalTitles()), None, 1.0),
        (
            score(asked, read_attempt(dialogue("9")), catalogue(far), LexicalTitles()),
            Reason.TITLE,
            0.0,
        ),
        (
            score(asked, read_attempt(dialogue("7")), catalogue(product("7")), LexicalTitles()),
            None,
            1.0,
        ),
        (score(asked, read_attempt(dialogue("9")), catalogue(far), NoTitles()), None, None),
        (
            score(asked, read_attempt(dialogue("7")), catalogue(product("7")), NoTitles()),
            None,
            None,
        ),
    ):
        assert found.reason is reason
        assert found.axes.title == share


def test_the_pipeline_version_says_what_compared_the_titles() -> None:
    versions = {scoring_pipeline_version(NoTitles()), scoring_pipeline_version(LexicalTitles())}
    assert len(versions) == 2
    assert "none" in scoring_pipeline_version(NoTitles())


def test_an_outcome_survives_its_json() -> None:
    for steps in (dialogue("7"), dialogue("8"), dialogue("\ud800,a\0"), None):
        found = outcome(steps)
        text = json.dumps(found.to_json(), allow_nan=False)
        text.encode("utf-8")
        assert Outcome.from_json(json.loads(text)) == found
    with pytest.raises(ValueError, match="schema"):
        Outcome.from_json({"schema": 99})


# Generated problems: one product space, small enough that constraints often meet.

VALUES = st.sampled_from(["a", "b", "c"])
PAIRS = st.dictionaries(VALUES, VALUES, max_size=3)
PRICES = st.integers(1, 30).map(float)


@st.composite
def products(draw: st.DrawFn) -> Product:
    return product(
        draw(st.sampled_from(["7", "8", "9"])),
        price=draw(PRICES),
        shop_id=draw(st.sampled_from(["1", "2"])),
        service=tuple(draw(st.lists(VALUES, max_size=2))),
        sku_options={str(i): o for i, o in enumerate(draw(st.lists(PAIRS, max_size=3)))},
        attributes={k: (v,) for k, v in draw(PAIRS).items()},
    )


@st.composite
def rewards(draw: st.DrawFn) -> Reward:
    low, high = sorted((draw(PRICES), draw(PRICES)))
    bands: list[tuple[PriceBand, ...]] = [(), (band(low, high),), (band(low, None),)]
    return reward(
        draw(st.sampled_from(["7", "8", "9"])),
        price=draw(st.sampled_from(bands)),
        service=tuple(draw(st.lists(VALUES, max_size=2, unique=True))),
        sku_options=tuple(draw(st.lists(PAIRS, max_size=2))),
        attributes=tuple({k: (v,)} for k, v in draw(PAIRS).items()),
    )


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    bucket = draw(st.sampled_from(list(Bucket)))
    count = 1 if bucket is Bucket.PRODUCT else 2
    wanted = [replace(draw(rewards()), product_id=str(7 + i)) for i in range(count)]
    terms = voucher(draw(PRICES)) if bucket is Bucket.VOUCHER else None
    return problem(*wanted, bucket=bucket, voucher=terms)


@given(problems(), st.lists(products(), max_size=3), st.lists(VALUES | st.sampled_from("789")))
def test_all_scores_are_bounded_and_strict_success_implies_upstreams(
    asked: Problem, known: list[Product], ids: list[str]
) -> None:
    found = outcome(dialogue(",".join(ids)), asked=asked, products=tuple(known))
    shares = [share for share in found.axes.to_json().values() if share is not None]
    assert all(0.0 <= share <= 1.0 for share in [*shares, *found.upstream_scores.values()])
    assert found.upstream_success or not found.success


@given(problems(), st.lists(products(), min_size=3, max_size=3))
def test_the_ground_truth_always_scores_one(asked: Problem, drawn: list[Product]) -> None:
    known = tuple(
        replace(p, product_id=str(7 + i), shop_id="1", price=1.0) for i, p in enumerate(drawn)
    )
    answer = ",".join(r.product_id for r in asked.rewards)
    found = outcome(dialogue(answer), asked=asked, products=known)
    assert found.upstream_scores["rule"] == found.upstream_scores["gt"] == 1.0
    # Two products of one peso and a budget of at least one: only the budget can fail.
    assert found.success or found.reason is Reason.BUDGET


@given(rewards(), rewards(), products())
def test_more_constraints_never_turn_a_failure_into_a_success(
    one: Reward, more: Reward, chosen: Product
) -> None:
    one = replace(one, product_id="1", service=(*one.service, "a"))
    both = replace(
        one,
        price=one.price + more.price,
        service=one.service + more.service,
        sku_options=one.sku_options + more.sku_options,
        attributes=one.attributes + more.attributes,
    )
    steps = dialogue(chosen.product_id)
    loose = outcome(steps, asked=problem(one), products=(chosen,))
    tight = outcome(steps, asked=problem(both), products=(chosen,))
    assert loose.success or not tight.success
