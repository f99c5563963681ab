"""Rates: every problem asked is in the denominator, and an open one leaves no number."""

from __future__ import annotations

import json

from scoring.asr import axis_rates, rates, success_rate
from scoring.outcome import Axes, Outcome, Reason
from scoring.types import Bucket


def made(success: bool, bucket: Bucket = Bucket.PRODUCT, **axes: float) -> Outcome:
    return Outcome(bucket, success, None if success else Reason.RUN_FAILED, success, Axes(**axes))


def test_failures_stay_in_the_denominator() -> None:
    rate = success_rate([made(True), made(False), made(False), made(True)])
    assert (rate.state, rate.asr, rate.asr_upstream) == ("complete", 0.5, 0.5)


def test_an_open_outcome_makes_the_rate_incomplete_and_not_a_number() -> None:
    rate = success_rate([made(True), None])
    assert (rate.problems, rate.open, rate.state) == (2, 1, "incomplete")
    assert rate.asr is None
    assert rate.asr_upstream is None


def test_no_problems_have_no_rate() -> None:
    assert success_rate([]).state == "empty"
    assert success_rate([]).asr is None


def test_an_axis_is_averaged_over_the_problems_that_state_it() -> None:
    found = axis_rates([made(True, price=1.0), made(False, price=0.5), made(False)])
    assert (found["price"].problems, found["price"].share) == (2, 0.75)
    assert (found["title"].problems, found["title"].share) == (0, None)


def test_a_bucket_is_incomplete_on_its_own() -> None:
    found = rates(
        [
            (Bucket.PRODUCT, made(True)),
            (Bucket.SHOP, None),
            (Bucket.SHOP, made(True, Bucket.SHOP)),
        ]
    )
    assert found.overall.state == "incomplete"
    assert found.by_bucket[Bucket.PRODUCT].asr == 1.0
    assert found.by_bucket[Bucket.SHOP].asr is None
    assert set(found.by_bucket) == {Bucket.PRODUCT, Bucket.SHOP}
    assert json.loads(json.dumps(found.to_json()))["by_bucket"]["shop"]["state"] == "incomplete"
