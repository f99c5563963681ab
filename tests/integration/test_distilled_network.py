"""The distilled agent as a miner submits it: with the files of its model, through admission and
qualifying into a race, where each validator serves the model itself."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena.submissions.artefact_files import make_manifest
from neurons.demo.contenders import AGENTS as FOLDER
from neurons.demo.contenders import SHIPPED, Contender
from scoring.types import JsonObject
from tests.integration.network_race import RULES, Field, race
from tests.isolations import open_or_skip
from tests.unit.training.small import SIZE, TOKENIZER_TEXTS, tokenizer_of
from training.backbone import random_qwen3, save
from training.files import write_directory
from training.tokenizing.small import LEAST

pytestmark = [pytest.mark.isolation, pytest.mark.database]

DISTILLED = Contender("distilled", FOLDER / "distilled.py", "a model that learnt from the corpus")
REACT = next(contender for contender in SHIPPED if contender.name == "react")
ONE = RULES.model_copy(update={"validators": 1, "quorum": 1})


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path: a database's socket lies in it."""
    directory = Path(tempfile.mkdtemp(prefix="dist-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


def _model(directory: Path) -> Path:
    """What training leaves behind: a model's directory, here of random weights."""
    tokenizer = tokenizer_of(TOKENIZER_TEXTS, LEAST + 50)
    made = random_qwen3(
        SIZE.model_copy(update={"context": 4096, "sliding_layers": 1}), tokenizer, seed=1
    )
    facts: JsonObject = {"stage": "sft", "base": made.base.to_json()}
    write_directory(directory, lambda at: save(made.model, tokenizer, at, facts))
    return directory


async def test_a_distilled_model_races_beside_the_agent_it_learnt_from(home: Path) -> None:
    await (await open_or_skip("bubblewrap")).close()
    model = _model(home / "model")
    agents = (REACT, DISTILLED)
    field = Field(agents, ("validator-1",), ONE, {"distilled": model})
    ran = await race(home, racing=field)
    (first, *_), (second, score, rate) = ran.standings
    assert (first, second) == ("react", "distilled")
    assert (score, rate) == (0.0, 0.0), "a model of random weights solves nothing"
    assert ran.records == [1] * ran.expected
    assert {make_manifest(model).hash} in ran.answering.values()
    assert len(ran.answering) == len(agents)
