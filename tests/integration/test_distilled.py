"""The distilled agent in a real sandbox, against a rollout of training: the same to the token."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from arena.runs.agent import AgentFile
from arena.runs.execution import World, execute
from arena.runs.record import AgentRef
from sandbox.catalog.interface import Catalog
from sandbox.gateway import HttpGateway
from sandbox.isolation.interface import Isolation, SandboxLimits
from scoring.titles import LexicalTitles
from tests.isolations import open_or_skip
from tests.unit.sandbox.standin.market import market
from tests.unit.training.rollouts.shopping import AGENT, PROBLEM, SOLUTION, call, chat, turn
from tests.unit.training.serving.speaking import Scripted
from training.rollouts.collecting import rollout_world
from training.rollouts.models import PolicyModels, TurnSampling
from training.rollouts.rollout import Task, roll_out

pytestmark = pytest.mark.isolation

ROOT = Path(__file__).resolve().parents[2]
SOURCE = (ROOT / "neurons" / "agents" / "distilled.py").read_bytes()
SAMPLING = TurnSampling(temperature=0.5, top_p=1.0, max_tokens=300)
LIMITS = SandboxLimits(wall_s=60, memory_bytes=512 << 20, pids=64, tmp_bytes=16 << 20)
SCRIPTS = {
    "a solution": SOLUTION,
    "hostile text, broken calls, a wrong tool, many calls": (
        turn("I look.", call("find_product", q="copper kettle"), call("find_product", q="whisk")),
        turn("Hm.", call("view_product_information", product_ids="41,42")),
        turn("Hm.", '<tool_call>\n{"name": "find_product", "arguments": {"q"\n</tool_call>'),
        turn("Hm.", call("buy", product_ids="42"), call("find_product", page=2)),
        turn("Twice.", call("recommend_product", product_ids="42")),
        turn("Twice.", call("recommend_product", product_ids="42")),
        turn("Done.", call("terminate", status="success"), call("find_product", q="x")),
    ),
    "no call": (turn("Nothing.", text="I found nothing."),),
}


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with market(tmp_path_factory.mktemp("market")) as catalog:
        yield catalog


@pytest.fixture
async def isolation() -> AsyncIterator[Isolation]:
    opened = await open_or_skip("bubblewrap")
    yield opened
    await opened.close()


@pytest.mark.parametrize("script", SCRIPTS)
async def test_the_agent_in_a_race_is_asked_what_a_rollout_of_training_asks(
    goods: Catalog, isolation: Isolation, script: str
) -> None:
    raced, rolled = Scripted(*SCRIPTS[script]), Scripted(*SCRIPTS[script])
    gateway = HttpGateway(goods, PolicyModels(chat(raced), SAMPLING, seed=1))
    world = World(goods, gateway, isolation, LexicalTitles(), "tiny", LIMITS)
    agent = AgentFile(AgentRef("distilled", "distilled.py", "0" * 64), SOURCE)
    try:
        record = await execute(world, agent, PROBLEM)
    finally:
        await gateway.close()
    async with rollout_world(goods, LexicalTitles()) as ground:
        models = PolicyModels(chat(rolled), SAMPLING, seed=1)
        rollout = await roll_out(
            ground, Task(PROBLEM, 0, "c-1"), models, "tiny", AGENT, max_turns=24
        )
    assert record.failure is None, record.log_tail
    assert raced.prompts == rolled.prompts
    assert len(raced.prompts) == len(SCRIPTS[script])
    assert record.outcome == rollout.record.outcome
    assert record.axis is not None
    assert rollout.record.axis is not None
    assert record.axis["axis"] == rollout.record.axis["axis"]
