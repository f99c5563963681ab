"""`arena train all`, small: a world becomes a corpus, a model through every stage, and a racer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.isolation

STAGES = ("sft", "reject", "teacher", "kto", "grpo")


def command(out: Path, recipe: str = "tiniest") -> subprocess.Popen[str]:
    options = ["--recipe", recipe, "--out", str(out), "--json", str(out.parent / "all.json")]
    return subprocess.Popen(
        [sys.executable, "-m", "neurons", "train", "all", *options],
        env=os.environ | {"ARENA_DATA_DIR": str(out.parent / "data"), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def until(process: subprocess.Popen[str], words: str) -> str:
    """What it says until a line holds `words`. Fails when it ends before."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if words in line:
            return said
    raise AssertionError(f"it ended without saying {words!r}:\n{said}")


def logs(out: Path) -> str:
    """The end of every step's log, for a failure's report."""
    parts = [f"{path.name}: {path.read_text()[-1500:]}" for path in (out / "logs").glob("*.log")]
    return "\n".join(parts)


@pytest.mark.usefixtures("sandbox")
def test_a_corpus_becomes_a_model_that_stands_in_a_race_beside_its_teacher(tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = command(out)
    until(process, "reject …")
    process.send_signal(signal.SIGKILL)
    process.communicate()

    process = command(out)
    _, said = process.communicate(timeout=900)
    assert process.returncode == 0, said + logs(out)
    assert "sft: done before" in said

    found: Mapping[str, Any] = json.loads((tmp_path / "all.json").read_text())
    assert found["stages"].keys() == set(STAGES)
    for name in STAGES:
        assert found["stages"][name]["updates"] >= 2, name
    assert found["stages"]["sft"]["parameters"] < 1_000_000
    assert found["evaluations"].keys() == {"standin", *STAGES}
    assert found["evaluations"]["standin"]["pass_at_1"]["estimate"] == 1
    racers = {one["name"]: one for one in found["race"]}
    assert racers.keys() == {"react", *(f"distilled-{name}" for name in STAGES)}
    assert all(one["open"] == 0 for one in racers.values())
    assert racers["react"]["asr"] == 1
    assert (out / "summary.svg").read_text().startswith("<svg")
    assert "| grpo | 2 |" in (out / "summary.md").read_text()

    process = command(out)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert said.count("done before") == len(found["steps"])
