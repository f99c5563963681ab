from __future__ import annotations

from pathlib import Path

import pytest

from arena.problems.pools import Side
from corpus_export.normalise import SYSTEM_TEXT
from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, row, tokenizer_of
from training.backbone import load, random_qwen3, save
from training.corpus import Guard
from training.exceptions import GuardError
from training.files import write_directory
from training.rewards.learning import HeadTask, run_head
from training.rewards.process import HeadSettings, load_head
from training.tokenizing.small import LEAST


def test_a_head_is_trained_on_scored_rows_and_reads_that_model(tmp_path: Path) -> None:
    tokenizer = tokenizer_of([SYSTEM_TEXT, *TOKENIZER_TEXTS], LEAST + 200)
    backbone = random_qwen3(SIZE, tokenizer, seed=1)
    start = tmp_path / "start"
    write_directory(start, lambda d: save(backbone.model, tokenizer, d, {}))
    rows = [row(n, success=n % 2 == 0, outcome={"price": float(n % 2 == 0)}) for n in range(12)]
    guard = Guard(allowed_problems={f"p{n}": f"c{n}" for n in range(12)})
    settings = HeadSettings(width=8, epochs=2, held_out=0.4)
    task = HeadTask(rows, guard, str(start), settings, 10_000, tmp_path / "head")
    report, measured = run_head(task)
    assert report["successes"] == 6
    assert measured is not None
    assert measured.turns > 0
    assert load_head(tmp_path / "head", load(start).base.hash).hidden == SIZE.hidden

    guard.forbidden_clusters["c3"] = Side.EVALUATION
    with pytest.raises(GuardError, match="c3"):
        run_head(task)
