"""The example agents and agents shaped like SN15's, in real sandboxes, over a small market.

Whether the model or code made a run's calls is decided from what the gateway recorded.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sandbox.catalog.interface import Catalog
from sandbox.gateway.server import HttpGateway
from sandbox.isolation.interface import Isolation, SandboxLimits, SandboxResult, SandboxSpec
from sandbox.models import ModelClient, discover
from sandbox.provenance.decision import decide_axis
from sandbox.standin.process import running_standin
from sandbox.standin.registry import NOVICE, SHOPPER
from sandbox.trace import Trace
from scoring.attempt import read_attempt
from scoring.types import AgentProblem
from tests.unit.sandbox.standin.market import market

pytestmark = pytest.mark.isolation

ROOT = Path(__file__).resolve().parents[2]
REACT = ROOT / "neurons" / "agents" / "react.py"
PIPELINE = ROOT / "neurons" / "agents" / "pipeline.py"
FIXTURES = ROOT / "tests" / "fixtures" / "agents"
DEFAULT = FIXTURES / "real_default.py"
FALLBACK = FIXTURES / "real_fallback.py"
SOURCES = {path: path.read_bytes() for path in (REACT, PIPELINE, DEFAULT, FALLBACK)}
LIMITS = SandboxLimits(wall_s=60, memory_bytes=512 << 20, pids=64, tmp_bytes=16 << 20)

TEAPOT = AgentProblem("p-1", "Show me a green ceramic teapot with lid made of clay", "Product")
SHOP = AgentProblem(
    "p-2",
    "Find a shop that sells both a bamboo tea whisk with cash on delivery, and a white ceramic "
    "teapot with lid",
    "Shop",
)


@pytest.fixture(scope="module")
def goods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with market(tmp_path_factory.mktemp("market")) as catalog:
        yield catalog


@asynccontextmanager
async def house(catalog: Catalog) -> AsyncIterator[HttpGateway]:
    """A gateway over the market and a stand-in server."""
    async with running_standin() as url:
        models = ModelClient(await discover(url, standin=True))
        gateway = HttpGateway(catalog, models)
        try:
            yield gateway
        finally:
            await gateway.close()
            await models.close()


async def run(
    isolation: Isolation,
    catalog: Catalog,
    agent: Path,
    problem: AgentProblem,
    *,
    model: str = SHOPPER,
) -> tuple[SandboxResult, Trace]:
    """One agent on one problem."""
    source = SOURCES[agent]
    async with house(catalog) as gateway, gateway.session("run-1") as session:
        spec = SandboxSpec(
            run_id="run-1",
            agent_source=source,
            problem=problem,
            gateway_socket=session.socket,
            limits=LIMITS,
            env={"SANDBOX_MODEL": model},
        )
        result = await isolation.run(spec)
    assert result.error is None, result.log
    return result, session.trace()


def ids(result: SandboxResult) -> tuple[str, ...]:
    """What the run recommended."""
    return read_attempt([dict(step) for step in result.dialogue or ()]).ids


@pytest.mark.parametrize("agent", [REACT, DEFAULT], ids=lambda p: p.stem)
@pytest.mark.parametrize(
    ("problem", "answer"), [(TEAPOT, ("12",)), (SHOP, ("22", "11"))], ids=["product", "shop"]
)
async def test_a_model_driven_agent_solves_the_problem_and_is_axis_a(
    each_isolation: Isolation,
    goods: Catalog,
    agent: Path,
    problem: AgentProblem,
    answer: tuple[str, ...],
) -> None:
    result, trace = await run(each_isolation, goods, agent, problem)
    assert ids(result) == answer
    decided = decide_axis(trace, result.dialogue, SOURCES[agent], query=problem.query)
    assert decided.axis == "A", decided
    assert all(event.standin for event in trace.llm())


@pytest.mark.parametrize("agent", [PIPELINE, FALLBACK], ids=lambda p: p.stem)
async def test_an_agent_whose_code_recommends_is_axis_b(
    each_isolation: Isolation, goods: Catalog, agent: Path
) -> None:
    result, trace = await run(each_isolation, goods, agent, TEAPOT)
    assert ids(result)
    decided = decide_axis(trace, result.dialogue, SOURCES[agent], query=TEAPOT.query)
    assert decided.axis == "B"
    assert list(trace.llm())


async def test_the_pipeline_solves_a_product_and_a_shop_problem(
    each_isolation: Isolation, goods: Catalog
) -> None:
    for problem, answer in ((TEAPOT, ("12",)), (SHOP, ("22", "11"))):
        result, _ = await run(each_isolation, goods, PIPELINE, problem)
        assert ids(result) == answer


async def test_a_weaker_model_makes_a_weaker_agent(
    each_isolation: Isolation, goods: Catalog
) -> None:
    asked = AgentProblem("p-3", "Find a bamboo tea whisk from LazMall", "Product")
    strong, _ = await run(each_isolation, goods, REACT, asked)
    weak, trace = await run(each_isolation, goods, REACT, asked, model=NOVICE)
    assert ids(strong) == ("22",)
    assert ids(weak) == ("21",)
    decided = decide_axis(trace, weak.dialogue, SOURCES[REACT], query=asked.query)
    assert decided.axis == "A"
