"""Recipes: the shipped ones are right, and a wrong one is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from training.exceptions import RecipeError
from training.recipe import SHIPPED, Stage, load_recipe, load_recipe_of, parse_recipe
from training.sft import SftRecipe

SFT = (SHIPPED / "sft.yaml").read_text(encoding="utf-8")


def changed(**keys: object) -> str:
    value = yaml.safe_load(SFT)
    value["sft"] |= keys
    return yaml.safe_dump(value)


def test_the_papers_values_stand_in_the_first_stage() -> None:
    recipe = load_recipe_of(SftRecipe, "sft")
    assert recipe.stage is Stage.SFT
    assert recipe.base is not None
    assert recipe.base.name == "Qwen/Qwen3-4B"
    assert recipe.sft.lora is not None
    assert recipe.sft.sweep == (1e-5, 3e-5, 1e-4)
    assert recipe.sft.max_tokens == 14_336
    assert recipe.sft.loop.epochs == 1
    assert recipe.sft.loop.gradient_checkpointing


def test_tiny_is_a_model_of_five_to_twenty_five_million_weights() -> None:
    from tests.unit.training.small import TOKENIZER_TEXTS, tokenizer_of
    from training.backbone import random_qwen3
    from training.tokenizing.small import LEAST

    recipe = load_recipe_of(SftRecipe, "tiny_sft")
    assert recipe.base is not None
    assert recipe.base.size is not None
    assert recipe.base.tokenizer is not None
    tokenizer = tokenizer_of(TOKENIZER_TEXTS, LEAST + 100)
    body = random_qwen3(recipe.base.size, tokenizer, seed=0).parameters
    missing = recipe.base.tokenizer.vocabulary - len(tokenizer)
    assert 5e6 < body + missing * recipe.base.size.hidden < 25e6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1", "no keys"),
        ("{", "no YAML"),
        ("stage: zap", "stage is to be one of"),
        ("{}", "stage is to be one of"),
        ("stage: sft", "sft: Field required"),
        (changed(max_token=3), "sft.max_token: Extra inputs are not permitted"),
        (changed(max_tokens=0), "sft.max_tokens: "),
        (changed(optimiser={"learning_rate": float("nan")}), "sft.optimiser.learning_rate: "),
        (changed(repeat={"hat": 3}), "sft.repeat.hat"),
        (changed(context_loss=0.5), "random weights"),
        (changed(drills={"updates": 3}), "random weights"),
    ],
)
def test_a_wrong_recipe_is_one_line_that_names_the_place(text: str, said: str) -> None:
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text, "mine.yaml")
    assert said in caught.value.message
    assert "\n" not in caught.value.message


def test_some_layer_has_to_see_the_whole_conversation() -> None:
    value = yaml.safe_load((SHIPPED / "tiny_sft.yaml").read_text(encoding="utf-8"))
    value["base"]["size"]["sliding_layers"] = value["base"]["size"]["layers"]
    with pytest.raises(RecipeError, match="some layer has to see"):
        parse_recipe(yaml.safe_dump(value), "mine.yaml")


def test_a_recipe_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(tmp_path / "none.yaml")
    assert "tiny_sft" in str(caught.value)


def test_a_file_is_read_as_a_shipped_recipe_is(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(SFT)
    assert load_recipe(tmp_path / "mine.yaml") == load_recipe("sft")


def test_a_recipe_of_another_stage_names_its_command() -> None:
    class Other(SftRecipe):
        pass

    with pytest.raises(RecipeError, match="stage sft") as caught:
        load_recipe_of(Other, "sft")
    assert caught.value.remedy == "arena train sft --recipe sft"
