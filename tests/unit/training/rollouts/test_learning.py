"""What rollouts kept is learnt from under the guard of the corpus, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from training.commands.rolling import learning
from training.corpus import open_corpora
from training.exceptions import GuardError
from training.recipe import load_recipe
from training.rejection import RejectRecipe


def test_a_row_of_the_evaluation_side_is_refused_by_name(day_corpus: Path, tmp_path: Path) -> None:
    corpora = open_corpora([day_corpus])
    recipe = load_recipe("tiny_reject")
    assert isinstance(recipe, RejectRecipe)
    good, [bad, *_] = list(corpora[0].train()), list(corpora[0].evaluation())
    with pytest.raises(GuardError, match=str(bad["problem_id"])):
        learning([*good, bad], corpora, recipe.sft, recipe, "models/sft", tmp_path)


def test_rows_that_may_be_learnt_from_are_a_task_that_names_them(
    day_corpus: Path, tmp_path: Path
) -> None:
    corpora = open_corpora([day_corpus])
    recipe = load_recipe("tiny_reject")
    assert isinstance(recipe, RejectRecipe)
    rows = list(corpora[0].train())
    tasks = [
        learning(chosen, corpora, recipe.sft, recipe, "models/sft", tmp_path)
        for chosen in (rows, rows[::-1], rows[1:])
    ]
    facts = [task.facts["rows"] for task in tasks]
    assert facts[0] == facts[1] != facts[2]
    assert tasks[0].start == "models/sft"
