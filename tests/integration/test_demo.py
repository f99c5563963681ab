"""The demonstration, small: who passes the gate, who loses, what is proven at its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.isolations import open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]


async def test_a_day_of_the_arena_ends_with_everything_proven(tmp_path: Path) -> None:
    await (await open_or_skip("bubblewrap")).close()
    result, said = _demo(tmp_path)
    gate, race = result["gate"], {a["name"]: a for a in result["race"]["agents"]}
    # The gate.
    assert gate["react"]["admitted"]
    assert gate["pipeline"]["admitted"]
    assert "copy.code" in gate["copycat"]["rules"]
    assert "answers.id_table" in gate["memoriser"]["rules"]
    assert "copycat" not in race
    # The bank: it knows what was open by heart; of what is drawn a lucky guess at most.
    assert result["memoriser"]["open"] == 1.0
    assert result["memoriser"]["held_out"] < 1.0
    # The race and the season.
    assert max(race, key=lambda name: race[name]["score"]) == "react"
    assert race["narrator"]["asr"] == race["react"]["asr"]
    assert result["season"]["title"]["champion"] == "react"
    # The records and the corpus, by the commands.
    assert "the draw of race-" in said
    assert "nothing failed" in said
    assert "corpus holds what it says" in said
    manifest = json.loads((Path(result["home"]) / "corpus" / "manifest.json").read_text())
    assert manifest["funnel"]["read"] == 18 * len(race)


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
