"""The real problems: the ground truth scores 100 % through the whole race."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.problems.suite import load_suite
from tests.integration.racing import STEPS, RaceProcess
from tests.isolations import open_or_skip
from tests.shared import SHARED, needs_shared

pytestmark = [pytest.mark.isolation, pytest.mark.database, needs_shared]

BENCH = SHARED / "shoppingbench"
SUITES = [BENCH / f"{bucket}.jsonl" for bucket in ("product", "shop", "voucher")]


def write_oracle(path: Path) -> None:
    """An agent that carries the answers of the shared problems in its own source."""
    answers = {
        problem.query: ",".join(reward.product_id for reward in problem.rewards)
        for suite in SUITES
        for problem in load_suite(suite).problems
    }
    path.write_text(
        f"{STEPS}\nANSWERS = {answers!r}\ndef agent_main(p):\n    return end(ANSWERS[p['query']])\n"
    )


async def test_an_agent_that_knows_the_answers_scores_everything(
    tmp_path: Path, database_url: str
) -> None:
    await (await open_or_skip("bubblewrap")).close()
    write_oracle(tmp_path / "oracle.py")
    suites = [part for suite in SUITES for part in ("--suite", str(suite))]
    options = ["--catalog", str(BENCH / "documents.jsonl.gz"), "--limit", "4"]
    options += ["--sandbox", "bubblewrap", "--json", "-"]
    race = RaceProcess(
        ["race", "run", "oracle.py", *suites, *options],
        tmp_path,
        {"ARENA_DATABASE_URL": database_url, "ARENA_DATA_DIR": str(tmp_path / "data")},
    )
    code, printed = race.end()
    assert code == 0, race.said
    (agent,) = json.loads(printed)["agents"]
    assert (agent["problems"], agent["asr"], agent["asr_upstream"]) == (12, 1.0, 1.0)
    assert set(agent["by_axis"].values()) == {1.0}
    assert agent["axis_a_share"] == 0.0
