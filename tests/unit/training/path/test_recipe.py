"""Recipes of the whole way: the shipped ones, and what is refused."""

from __future__ import annotations

import pytest
import yaml

from training.dr_grpo import GrpoRecipe
from training.exceptions import RecipeError
from training.path.recipe import PathRecipe, resolved
from training.path.steps import TRAINED
from training.recipe import SHIPPED, load_recipe_of, parse_recipe

TINIEST = yaml.safe_load((SHIPPED / "tiniest.yaml").read_text(encoding="utf-8"))


def changed(**keys: object) -> str:
    return yaml.safe_dump(TINIEST | keys)


def test_the_shipped_ways_hold_a_recipe_of_its_stage_for_every_stage() -> None:
    for name in ("tiny", "tiniest"):
        way = load_recipe_of(PathRecipe, name)
        for stage in (*TRAINED, "eval"):
            assert resolved(getattr(way, stage).recipe).stage.value == stage


def test_tiny_makes_at_least_twenty_updates_of_dr_grpo_in_two_hours() -> None:
    way = load_recipe_of(PathRecipe, "tiny")
    grpo = resolved(way.grpo.recipe)
    assert isinstance(grpo, GrpoRecipe)
    assert grpo.grpo.updates >= 20
    stages = sum(getattr(way, stage).minutes for stage in TRAINED)
    evaluations = way.eval.minutes * (len(TRAINED) + 1)
    assert way.world.minutes + stages + evaluations + way.race.minutes <= 120


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(sft=TINIEST["sft"] | {"recipe": "tiny_kto"}), "its recipe is of stage kto"),
        (changed(kto=TINIEST["kto"] | {"recipe": "tiny_ktoo"}), "there is no recipe 'tiny_ktoo'"),
        (changed(grpo=TINIEST["grpo"] | {"recipe": {"stage": "grpo"}}), "grpo: Field required"),
        (changed(race={"problems": 0, "minutes": 1}), "race.problems: "),
        (changed(sft=TINIEST["sft"] | {"minutes": 0}), "sft.minutes: "),
    ],
)
def test_a_wrong_way_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(RecipeError, match=said) as caught:
        parse_recipe(text, "way.yaml")
    assert "\n" not in caught.value.message
