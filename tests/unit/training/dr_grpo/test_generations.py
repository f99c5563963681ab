from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.training.dr_grpo.rollouts import group, rollout
from training.dr_grpo.generations import read_generation, write_generation
from training.exceptions import CheckpointError
from training.on_policy import drawn


def test_rollouts_are_read_back_as_they_were(tmp_path: Path) -> None:
    made = [*group([True, None, False]), rollout(False, seed=9, broken=True)]
    path = tmp_path / "rollouts" / "generation-000000.jsonl.zst"
    write_generation(path, made)
    found = read_generation(path)
    for before, after in zip(made, found, strict=True):
        assert after.turns == before.turns
        assert after.outcome == before.outcome
        assert after.error == before.error
        assert len(after.segments) == len(before.segments)
        for one, other in zip(before.segments, after.segments, strict=True):
            assert one.ids.tolist() == other.ids.tolist()
            assert one.logprobs.tolist() == other.logprobs.tolist()


@pytest.mark.parametrize("content", [b"", b"no zstd", b"\x28\xb5\x2f\xfd"])
def test_a_generation_that_cannot_be_read_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "g").write_bytes(content)
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_generation(tmp_path / "g")


def test_every_problem_is_drawn_once_before_any_comes_again() -> None:
    found = drawn(5, 0, 15, seed=1)
    for begin in (0, 5, 10):
        assert sorted(found[begin : begin + 5]) == list(range(5))
    assert found[3:9] == drawn(5, 3, 6, seed=1)
    assert drawn(50, 0, 50, seed=1) != drawn(50, 0, 50, seed=2)
