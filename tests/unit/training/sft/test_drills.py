"""Drills: what they hold, what they are learnt from, and that the seed and the update decide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.types import JsonObject
from tests.unit.training.small import TOKENIZER_TEXTS, call, row, sample_of, tokenizer_of
from training.exceptions import CorpusRefusedError, MaskError
from training.render.checking import Scaffold
from training.sft.drills import TWICE, Drill, Drills, DrillSettings, assert_copied, ids_at
from training.sft.objective import SftObjective
from training.sft.recipe import SftSettings
from training.tokenizing.small import LEAST

TOKENIZER = tokenizer_of(TOKENIZER_TEXTS, LEAST + 100)
SCAFFOLD = Scaffold.of(TOKENIZER)
SETTINGS = DrillSettings(updates=10, tokens=300, most=4, beside=2)
IDS = ("2393280632", "4032125249", "6939821670", "9112774001", "7205668347")


def shows(number: int, ids: tuple[str, ...]) -> JsonObject:
    """A row whose tool shows these products; what the model says of others is not shown."""
    listed = ",".join(f'{{"product_id":"{one}"}}' for one in ids)
    said: JsonObject = {
        "role": "assistant",
        "content": "",
        "tool_calls": [call("view_product_information", '{"product_id":"1111111111"}')],
    }
    shown: JsonObject = {"role": "tool", "content": f"[{listed}]", "tool_call_id": "call_1"}
    return row(number, messages=[{"role": "user", "content": "hats"}, said, shown, said])


def drills(*rows: JsonObject, seed: int = 0) -> Drills:
    return Drills(rows or (shows(1, IDS),), TOKENIZER, SETTINGS, seed)


def encoded(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False))


def found(one: str, ids: list[int]) -> int:
    """How often an id's tokens stand in a drill."""
    tokens = encoded(one)
    width = len(tokens)
    return sum(ids[place : place + width] == tokens for place in range(len(ids)))


def test_a_drill_says_each_id_that_it_shows_twice_and_no_other() -> None:
    for update, most in ((0, 2), (9, 4)):
        for drill in drills().alone(update):
            counts = [found(one, drill.ids.tolist()) for one in IDS]
            assert sorted(counts) == [0] * (len(IDS) - most) + [1 + TWICE] * most
            assert found("1111111111", drill.ids.tolist()) == 0


def test_all_of_an_id_but_its_first_token_is_learnt_each_time_it_is_said_again() -> None:
    for drill in drills().alone(9):
        chosen = [one for one in IDS if found(one, drill.ids.tolist())]
        learnt = sorted(drill.ids[drill.mask].tolist())
        assert learnt == sorted(TWICE * [t for one in chosen for t in encoded(one)[1:]])
        assert (drill.cluster, drill.row) == ("c1", f"{1:064x}")
        assert_copied(drill)


def test_a_mask_over_what_was_not_shown_is_told() -> None:
    (drill, *_) = drills().alone(0)
    for place in np.flatnonzero(~drill.mask)[[0, 1, -1]]:
        wrong = drill.mask.copy()
        wrong[place] = True
        with pytest.raises(MaskError):
            assert_copied(replace(drill, ids=np.arange(len(drill), dtype=np.int32), mask=wrong))
    with pytest.raises(MaskError):
        assert_copied(replace(drill, mask=np.zeros_like(drill.mask)))


def test_the_seed_and_the_update_decide_and_nothing_else() -> None:
    def ids(seed: int, update: int) -> list[list[int]]:
        return [sample.ids.tolist() for sample in drills(seed=seed).alone(update)]

    assert ids(0, 3) == ids(0, 3)
    assert ids(0, 3) != ids(0, 4)
    assert ids(0, 3) != ids(1, 3)


def test_rows_that_show_one_product_are_nothing_to_practise_with() -> None:
    with pytest.raises(CorpusRefusedError, match="two products"):
        drills(shows(1, IDS[:1]), shows(2, (IDS[0], IDS[0])))
    of_both = drills(shows(1, IDS[:1]), shows(2, IDS[:2]))
    assert {sample.cluster for sample in of_both.alone(0)} == {"c2"}


@given(st.integers(1, 500), st.integers(2, 20))
def test_drills_begin_with_pairs_and_grow_to_the_longest(updates: int, most: int) -> None:
    settings = DrillSettings(updates=updates, most=most)
    lengths = [ids_at(update, settings) for update in range(updates)]
    assert lengths[0] == 2
    assert lengths == sorted(lengths)
    assert max(lengths) <= most
    if updates >= 10 * most:
        assert lengths[-1] == most


def objective(settings: SftSettings, used: Drills | None) -> SftObjective:
    samples = [sample_of([1, 2, 3], [0, 1, 1], name) for name in "abc"]
    return SftObjective(samples, settings, 0, SCAFFOLD, lambda _: None, None, used)


def settings_of(**changes: object) -> SftSettings:
    return SftSettings.model_validate(
        {
            "optimiser": {"learning_rate": 1e-3},
            "batch": {"samples": 2},
            "loop": {"epochs": 2},
            **changes,
        }
    )


def test_drills_come_first_and_then_beside_the_rows() -> None:
    with_drills = objective(settings_of(), drills())
    assert with_drills.updates == SETTINGS.updates + 2 * 2
    for batch in with_drills.batches(0):
        assert {one.cluster for one in batch.samples} == {"c1"}
        with_drills.check(batch)
    epoch = [
        [one.cluster for batch in with_drills.batches(10 + update) for one in batch.samples]
        for update in range(2)
    ]
    assert sorted(name for names in epoch for name in names) == ["c-a", "c-b", "c-c", *["c1"] * 4]
    assert objective(settings_of(), None).updates == 2 * 2
    (batch,) = with_drills.batches(10)
    assert batch.spoken == sum(int(one.mask.sum()) for one in batch.samples)


def test_what_a_drill_shows_is_drawn_by_lot_and_is_not_predicted() -> None:
    used = objective(settings_of(context_loss=0.5), drills())
    assert all(batch.shown == 0 for batch in used.batches(0))
    (batch,) = used.batches(10)
    rows = [one for one in batch.samples if not isinstance(one, Drill)]
    assert batch.shown == sum(int((~one.mask).sum()) - 1 for one in rows)


def test_a_drill_whose_mask_is_wrong_is_not_learnt_from() -> None:
    used = objective(settings_of(), drills())
    (batch, *_) = used.batches(0)
    batch.pack.mask[batch.pack.starts[0]] = True
    with pytest.raises(MaskError):
        used.check(batch)
