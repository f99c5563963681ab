"""Rules that make no sense are refused, with the name of the one."""

from __future__ import annotations

import math

import pytest

from arena.exceptions import SeasonError
from arena.season.rules import SeasonRules
from scoring.types import Bucket, Json


def test_the_defaults_are_those_of_the_public_network() -> None:
    rules = SeasonRules()
    assert (rules.closing, rules.zone) == ("12:00", "America/Los_Angeles")
    assert rules.submission_hours == 12
    assert rules.drawn == 90
    assert rules.richness_share == 0


def test_they_survive_the_journal() -> None:
    rules = SeasonRules(quota={Bucket.SHOP: 3}, closing="09:30", zone="Europe/Berlin")
    assert SeasonRules.from_json(rules.to_json()) == rules


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("qualifying_threshold", math.nan),
        ("qualifying_threshold", 1.1),
        ("richness_share", math.nan),
        ("richness_share", -0.1),
        ("margin_half_life_days", 0),
        ("margin_initial", math.inf),
        ("margin_floor", 0.5),
        ("closing", "24:00"),
        ("closing", "noon"),
        ("zone", "Atlantis/Capital"),
        ("zone", "../../etc/passwd"),
        ("quota", {}),
        ("quota", {"product": 0}),
        ("quota", {"shop": -1}),
        ("quota", {"lunch": 1}),
        ("quorum", 4),
        ("validators", 0),
        ("deadline_hours", 23.0),
        ("beacon_patience_hours", 21.0),
        ("submission_hours", 0),
        ("no_such_rule", 1),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, value: Json) -> None:
    with pytest.raises(SeasonError) as refused:
        SeasonRules.from_json({name: value})
    assert refused.value.code == "season.bad_rules"
