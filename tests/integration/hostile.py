"""Runs the agents of `tests/fixtures/agents` confined, behind a real gateway, and unconfined."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from sandbox.gateway import HttpGateway
from sandbox.isolation.interface import Isolation, SandboxLimits, SandboxResult, SandboxSpec
from sandbox.models import ModelClient
from sandbox.trace import Trace
from scoring.types import AgentProblem, JsonObject
from tests.unit.sandbox.worlds import WordCatalog

AGENTS = Path(__file__).parents[1] / "fixtures" / "agents"
PROBLEM = AgentProblem("p-1", "an enamel mug", "Product")
LIMITS = SandboxLimits(
    wall_s=60.0,
    memory_bytes=256 << 20,
    pids=64,
    open_files=256,
    tmp_bytes=32 << 20,
    file_bytes=8 << 20,
    answer_bytes=4 << 20,
    log_bytes=64 << 10,
)

_UNCONFINED = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("agent", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps(module.agent_main({"problem_id": "p-1", "query": "q", "category": "Product"})))
"""


@dataclass(frozen=True, slots=True)
class Confined:
    """How a confined run ended, and what its gateway saw."""

    result: SandboxResult
    trace: Trace

    @property
    def step(self) -> dict[str, Any]:
        """The first step of the dialogue, of a run that must have answered."""
        assert self.result.error is None, self.result.error
        assert self.result.dialogue is not None
        return cast("dict[str, Any]", self.result.dialogue[0])


def source(name: str) -> bytes:
    """The source of a fixture."""
    return (AGENTS / f"{name}.py").read_bytes()


async def confined(
    isolation: Isolation,
    agent: str | bytes,
    *,
    limits: SandboxLimits = LIMITS,
    env: Mapping[str, str] | None = None,
    catalog: WordCatalog | None = None,
    opened: list[str] | None = None,
) -> Confined:
    """Run a fixture, or a source, in a fresh sandbox with a gateway of its own.

    The path of the gateway's socket is appended to `opened`.
    """
    models = ModelClient([])
    gateway = HttpGateway(catalog or WordCatalog(), models)
    try:
        async with gateway.session("hostile") as session:
            if opened is not None:
                opened.append(str(session.socket))
            spec = SandboxSpec(
                run_id="hostile",
                agent_source=source(agent) if isinstance(agent, str) else agent,
                problem=PROBLEM,
                gateway_socket=session.socket,
                limits=limits,
                env=env or {},
            )
            result = await isolation.run(spec)
        return Confined(result, session.trace())
    finally:
        await gateway.close()
        await models.close()


async def unconfined(name: str, env: Mapping[str, str] | None = None) -> JsonObject:
    """Run a fixture as a plain process of this user: what it finds shows that it can find.

    Only for agents that change nothing but the bait of the test, whatever succeeds: this
    one runs on the machine itself, often as root.
    """
    assert name.startswith("escape_")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _UNCONFINED,
        str(AGENTS / f"{name}.py"),
        env={**os.environ, **(env or {})},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    steps: list[JsonObject] = json.loads(out)
    return steps[0]


def found(step: Mapping[str, Any]) -> list[str]:
    """What an escape agent says that it reached."""
    return cast("list[str]", step["found"])
