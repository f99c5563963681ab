"""Open a judge: its models, or the rule-based stand-in when none is named, and close it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from judge.judging import Judge
from judge.settings import JudgeSettings
from sandbox.models import ModelClient, ModelRoute, ModelSettings, discover
from sandbox.standin.process import running_standin
from sandbox.standin.registry import PREFIX

STANDIN = "stand-in"
"""The server's name in records when a rule-based judge answers."""
STANDIN_MODULE = "judge.standin"
STANDIN_JUDGE = PREFIX + "judge-1"


@dataclass(frozen=True, slots=True)
class OpenJudge:
    """A judge that is ready, and whether rules stand in for one of its models."""

    judge: Judge
    standin: bool


@asynccontextmanager
async def open_judge(
    settings: JudgeSettings | None = None, *, routes: Sequence[ModelRoute] = ()
) -> AsyncIterator[OpenJudge]:
    """A judge with the models of the settings, from the operator's table.

    Without any named model the stand-in judges, on a server of its own that ends with the
    context; so do models named `standin/…`. `routes` are further ones. Raises JudgeError
    for settings that fit no model, ModelError where a server does not answer.
    """
    settings = settings or JudgeSettings()
    if not settings.models:
        settings = settings.model_copy(update={"models": (STANDIN_JUDGE,)})
    async with AsyncExitStack() as stack:
        table = [*routes, *await _routes(settings.models, stack)]
        client = ModelClient(table)
        stack.push_async_callback(client.close)
        named = {route.model for route in table if route.standin}
        yield OpenJudge(Judge(client, settings), not named.isdisjoint(settings.models))


async def _routes(names: Sequence[str], stack: AsyncExitStack) -> list[ModelRoute]:
    table: list[ModelRoute] = []
    if any(not name.startswith(PREFIX) for name in names):
        models = ModelSettings()
        table += models.routes()
        if models.model_url is not None:
            table += await discover(models.model_url, api_key=models.model_key)
    if any(name.startswith(PREFIX) for name in names):
        url = await stack.enter_async_context(running_standin(load=(STANDIN_MODULE,)))
        table += await discover(url, server=STANDIN, standin=True)
    return table
