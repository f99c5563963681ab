"""The race at the end: the agent that taught, and the models that learnt from it, in one table.

Every model is served by a process of its own and stands in the table of models beside the
stand-in shopper. An agent finds one model in its sandbox; a copy of `distilled` for each
trained model names that one instead.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from judge.opening import STANDIN_JUDGE, STANDIN_MODULE
from sandbox.standin.process import running_standin
from sandbox.standin.registry import SHOPPER
from scoring.types import Json, JsonObject
from training.evaluation.served import running_model
from training.files import read_json_file, write_file

if TYPE_CHECKING:
    from training.path.running import Way

RESULT: Final = "race.json"
_NAMES = (
    '\n\nfrom os import environ  # noqa: E402\n\nenviron["SANDBOX_MODEL"] = {name}\n'
    "MAX_TOKENS = {turn_tokens}\n"
)
"""Put behind an agent's file: it then asks this model, for answers of so many tokens."""


def race_at_the_end(way: Way, models: Sequence[str]) -> JsonObject:
    """Serve the models and race their agents beside the teacher's. Raises as steps do."""
    return asyncio.run(_race(way, models))


async def _race(way: Way, models: Sequence[str]) -> JsonObject:
    layout, recipe = way.layout, way.recipe
    async with AsyncExitStack() as stack:
        standin = await stack.enter_async_context(running_standin(load=[STANDIN_MODULE]))
        table: list[Json] = [
            {"model": name, "base_url": standin, "server": "stand-in", "standin": True}
            for name in (SHOPPER, STANDIN_JUDGE)
        ]
        agents = [str(way.agents["react"])]
        threads = max(1, (os.cpu_count() or 1) // max(1, len(models)))
        for name in models:
            url = await stack.enter_async_context(
                running_model(layout.model(name), name, threads=threads)
            )
            table.append({"model": name, "base_url": url, "server": "distilled"})
            path = layout.out / "agents" / f"distilled-{name}.py"
            write_agent(path, way.agents["distilled"], name, recipe.race.turn_tokens)
            agents.append(str(path))
        arguments = ["race", "run", *agents, "--suite", str(layout.held_out)]
        arguments += ["--catalog", str(layout.world), "--out", str(layout.race)]
        arguments += ["--limit", str(recipe.race.problems), "--model", SHOPPER]
        arguments += ["--judge-model", STANDIN_JUDGE, "--json", str(layout.out / RESULT)]
        return await asyncio.to_thread(
            way.spend,
            "race",
            tuple(arguments),
            recipe.race.minutes * 60,
            {"ARENA_MODELS": json.dumps(table)},
        )


def write_agent(path: Path, distilled: Path, model: str, turn_tokens: int) -> None:
    """Write a copy of the agent that asks `model`, for at most so many tokens a turn."""
    source = distilled.read_text(encoding="utf-8").rstrip("\n")
    names = _NAMES.format(name=json.dumps(model), turn_tokens=turn_tokens)
    write_file(path, (source + names).encode())


def race_result(result: Path) -> list[JsonObject]:
    """Each agent of the race as its report has it; none before it was raced."""
    if not result.exists():
        return []
    agents = read_json_file(result).get("agents")
    return [one for one in agents if isinstance(one, dict)] if isinstance(agents, list) else []
