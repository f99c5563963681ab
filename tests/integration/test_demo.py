"""The demonstration, small: the whole network, who passes the gate, what stands on chain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from neurons.demo.story import VALIDATORS
from scoring.weights import U16_MAX
from tests.isolations import open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]


async def test_a_day_of_the_arena_ends_paid_and_proven(tmp_path: Path) -> None:
    await (await open_or_skip("bubblewrap")).close()
    result, said = _demo(tmp_path)
    gate, racers = result["gate"], result["season"]["racers"]
    # The gate.
    assert gate["react"]["admitted"]
    assert gate["pipeline"]["admitted"]
    assert "copy.code" in gate["copycat"]["rules"]
    assert "answers.id_table" in gate["memoriser"]["rules"]
    assert not {"copycat", "memoriser", "spy", "glutton"} & set(racers)
    # The bank: it knows what was open by heart; of what is drawn a lucky guess at most.
    assert result["memoriser"]["open"] == 1.0
    assert result["memoriser"]["held_out"] < 1.0
    # The race, as both validators saw it.
    assert max(racers, key=lambda name: racers[name]["score"]) == "react"
    assert racers["narrator"]["asr"] == racers["react"]["asr"]
    assert {r["validators"] for r in racers.values()} == {len(VALIDATORS)}
    assert result["season"]["champion"] == "react"
    # The weights: uid 0 burns, the winner has its share, and both set the same.
    vector = result["weights"]["vector"]
    assert vector[0] == max(vector) == U16_MAX
    assert abs(sorted(vector)[-2] / sum(vector) - 0.25) < 0.001
    assert result["weights"]["set_by"] == list(VALIDATORS)
    # The records and the corpus, by the commands.
    assert "the draw of race-" in said
    assert "nothing failed" in said
    assert "corpus holds what it says" in said
    manifest = json.loads((Path(result["home"]) / "corpus" / "manifest.json").read_text())
    admitted = sum(answer["admitted"] for answer in gate.values())
    qualifying, race = 12 * admitted, 6 * len(racers) * len(VALIDATORS)
    # Who qualified before the second validator had joined was scored by the first alone.
    assert qualifying + race <= manifest["funnel"]["read"] <= 2 * qualifying + race


def _demo(directory: Path) -> tuple[dict[str, Any], str]:
    """What a demonstration writes for machines, and what it tells people."""
    out = directory / "demo.json"
    arguments = ["demo", "--problems", "6", "--sandbox", "bubblewrap", "--json", str(out)]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ARENA_")}
    done = subprocess.run(
        [sys.executable, "-m", "neurons", *arguments],
        cwd=directory,
        env=kept | {"ARENA_DATA_DIR": str(directory / "v")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text()), done.stdout + done.stderr
