"""Rollouts kept as rows of the corpus, on disk, through a kill, mixed and taught from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from corpus_export.rows import SCHEMA
from tests.unit.training.rollouts.shopping import AGENT, PROBLEM, SOLUTION, call, chat, turn
from tests.unit.training.rollouts.test_collecting import Knowing
from tests.unit.training.serving.speaking import Scripted, renderer
from training.exceptions import CorpusRefusedError, NothingToLearnError, OtherRunError, RolloutError
from training.recipe import load_recipe, shipped_recipes
from training.rejection import Kept, RejectRecipe, mixed, sift, write_kept
from training.render.rows import render_row
from training.rollouts.collecting import RolloutSettings, asking_policy
from training.rollouts.keeping import Collection, keep_rollouts
from training.rollouts.models import TurnSampling
from training.rollouts.rollout import Rollout, RolloutWorld, Task
from training.rollouts.rows import NOTICE, read_rows
from training.teacher import TeacherRecipe
from training.types import Policy

SETTINGS = RolloutSettings(sampling=TurnSampling(max_tokens=300), at_once=1, seed=1)


def collection(out: Path, samples: int = 3, **facts: Any) -> Collection:
    tasks = [Task(PROBLEM, sample, "c-1") for sample in range(samples)]
    return Collection(out, tasks, "tiny", AGENT, SETTINGS, facts)


async def kept_of(
    world: RolloutWorld, out: Path, policy: Policy, samples: int = 3
) -> tuple[Kept, list[Rollout]]:
    made: list[Rollout] = []
    asked = collection(out, samples)
    records, _ = await keep_rollouts(
        asked, world, asking_policy(chat(policy), SETTINGS), made.append
    )
    return sift(records, asked.tasks, world.catalog), made


async def test_what_succeeds_is_a_row_of_the_corpus_and_says_where_it_comes_from(
    world: RolloutWorld, tmp_path: Path
) -> None:
    kept, [rollout] = await kept_of(world, tmp_path, Scripted(*SOLUTION), samples=1)
    [row] = kept.rows
    assert list(row) == SCHEMA.names
    pa.Table.from_pylist([row], schema=SCHEMA)
    assert row["record_hash"] == rollout.record.encode().hash
    assert (row["problem_id"], row["cluster"], row["split"]) == ("p-1", "c-1", "train")
    assert (row["agent_source_hash"], row["success"], row["axis"]) == ("0" * 64, True, "A")
    assert [row[name] for name in ("coefficient", "quality", "gate", "final_score")] == [None] * 4
    assert row["notice"] == NOTICE
    sample = render_row(row, renderer())
    [segment] = rollout.trajectory.segments
    assert sample.ids[: len(segment.ids)].tolist() == segment.ids.tolist()


async def test_what_fails_is_scored_and_not_kept_and_each_success_counts_once(
    world: RolloutWorld, tmp_path: Path
) -> None:
    wrong = (turn("A guess.", call("recommend_product", product_ids="999")), SOLUTION[3])
    kept, _ = await kept_of(world, tmp_path, Scripted(*SOLUTION, *wrong, *SOLUTION))
    assert [len(kept.rows), len(kept.scored)] == [1, 3]
    assert [row["success"] for row in kept.scored] == [True, False, True]
    assert dict(kept.left_out) == {"no_success": 1, "same_as_another": 1}


async def test_a_success_that_recommended_twice_is_not_imitated(
    world: RolloutWorld, tmp_path: Path
) -> None:
    # The gateway refuses the second, so the run is a strict success.
    twice = (*SOLUTION[:3], turn("Again.", call("recommend_product", product_ids="12")),
             SOLUTION[3])  # fmt: skip
    kept, [rollout] = await kept_of(world, tmp_path, Scripted(*twice), samples=1)
    assert not kept.rows
    assert sum(kept.left_out.values()) == 1
    assert rollout.record.closed


async def test_after_a_failure_the_same_call_makes_only_what_is_missing(
    world: RolloutWorld, tmp_path: Path
) -> None:
    with pytest.raises(RolloutError, match="1 rollouts are done"):
        await kept_of(world, tmp_path, Knowing(fail_at=6))
    kept, made = await kept_of(world, tmp_path, Knowing())
    assert [rollout.task.sample for rollout in made] == [1, 2]
    assert len(kept.scored) == 3
    again, none = await kept_of(world, tmp_path, Knowing())
    assert not none
    assert again.scored == kept.scored


async def test_a_torn_end_of_the_file_costs_the_rollout_that_was_being_written(
    world: RolloutWorld, tmp_path: Path
) -> None:
    await kept_of(world, tmp_path, Knowing())
    file = tmp_path / "records.jsonl.zst"
    file.write_bytes(file.read_bytes()[:-20])
    _, made = await kept_of(world, tmp_path, Knowing())
    assert [rollout.task.sample for rollout in made] == [2]


async def test_a_directory_of_other_rollouts_is_refused(
    world: RolloutWorld, tmp_path: Path
) -> None:
    await kept_of(world, tmp_path, Knowing())
    other = collection(tmp_path, model_hash="another")
    with pytest.raises(OtherRunError, match="model_hash"):
        await keep_rollouts(other, world, asking_policy(chat(Knowing()), SETTINGS))


async def test_rows_come_back_from_disk_as_they_were(world: RolloutWorld, tmp_path: Path) -> None:
    kept, _ = await kept_of(world, tmp_path / "rollouts", Knowing())
    write_kept(tmp_path, kept)
    assert read_rows(tmp_path / "kept.jsonl.zst") == json.loads(json.dumps(kept.rows))
    (tmp_path / "kept.jsonl.zst").write_bytes(b"no rows")
    with pytest.raises(CorpusRefusedError, match="no rows of rollouts"):
        read_rows(tmp_path / "kept.jsonl.zst")


def rows(name: str, count: int) -> list[dict[str, Any]]:
    return [{"record_hash": f"{name}-{n}", "problem_id": str(n)} for n in range(count)]


def owners(chosen: Sequence[dict[str, Any]]) -> tuple[int, int]:
    own = sum(row["record_hash"].startswith("own") for row in chosen)
    return own, len(chosen) - own


@pytest.mark.parametrize(("share", "of_corpus"), [(0.5, 14), (0.7, 6), (1.0, 0)])
def test_rows_are_mixed_in_the_share_that_the_recipe_says(share: float, of_corpus: int) -> None:
    own, corpus = rows("own", 14), rows("corpus", 40)
    chosen = mixed(own, corpus, share, seed=1)
    assert owners(chosen) == (14, of_corpus)
    assert mixed(own, list(reversed(corpus)), share, seed=1) == chosen
    assert mixed(own, corpus, share, seed=2) != chosen or share == 1.0


def test_a_race_that_is_run_again_lends_rows_of_the_same_problems() -> None:
    own, corpus = rows("own", 4), rows("corpus", 40)
    again = [row | {"record_hash": f"corpus-{(n * 7) % 40}"} for n, row in enumerate(corpus)]
    first, second = mixed(own, corpus, 0.5, seed=1), mixed(own, again, 0.5, seed=1)
    assert [row["problem_id"] for row in first] == [row["problem_id"] for row in second]


def test_a_small_corpus_is_taken_whole_and_no_success_is_said() -> None:
    assert owners(mixed(rows("own", 10), rows("corpus", 3), 0.5, seed=1)) == (10, 3)
    with pytest.raises(NothingToLearnError):
        mixed([], rows("corpus", 3), 0.5, seed=1)


def test_the_shipped_recipes_have_the_papers_values() -> None:
    rejection = load_recipe("rejection_v2")
    assert isinstance(rejection, RejectRecipe)
    sample = rejection.sample
    assert (sample.samples, sample.temperature, sample.top_p, sample.max_turns) == (8, 0.9, 0.95, 8)
    assert rejection.share == 0.5
    ablation = load_recipe("rejection_v2_70")
    assert isinstance(ablation, RejectRecipe)
    assert replace_share(ablation, 0.5) == rejection.model_copy(update={"about": ablation.about})
    for name in ("opd_rebal", "opd_renderers", "tiny_teacher"):
        taught = load_recipe(name)
        assert isinstance(taught, TeacherRecipe)
        assert taught.sft.repeat == {"voucher": 3}
    assert {"opd_sonnet", "tiny_reject"} <= set(shipped_recipes())


def replace_share(recipe: RejectRecipe, share: float) -> RejectRecipe:
    return recipe.model_copy(update={"share": share})
