"""Open the world that runs need: catalogue, models, gateway, isolation.

A local test and a race open it the same way. Without a model server the stand-in is
started, and said; everything is closed and removed when the context ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from arena.exceptions import SettingsError
from arena.problems.titles import DEFAULT_MODEL, TitleMode, title_similarity
from arena.runs.execution import World
from arena.runs.judging import RunJudge
from judge.opening import STANDIN, STANDIN_JUDGE, STANDIN_MODULE
from judge.settings import JudgeSettings
from sandbox.catalog import open_catalog
from sandbox.gateway import HttpGateway
from sandbox.gateway.interface import GatewayLimits
from sandbox.isolation import open_isolation
from sandbox.isolation.interface import SandboxLimits
from sandbox.models import ModelClient, ModelRoute, ModelSettings, discover
from sandbox.models.routes import Wire, server_name
from sandbox.standin.process import running_standin
from sandbox.standin.registry import SHOPPER


class SandboxKind(StrEnum):
    """A way to confine agents."""

    DOCKER = "docker"
    BUBBLEWRAP = "bubblewrap"


@dataclass(frozen=True, slots=True)
class WorldOptions:
    """What a person chose. `sandbox` None takes Docker when it is ready, else bubblewrap.

    `judge` None judges when there is someone to judge: the models named here or in the
    settings, or the stand-in judge beside the stand-in models.
    """

    catalog: Path
    model_url: str | None = None
    model: str | None = None
    sandbox: SandboxKind | None = None
    titles: TitleMode = TitleMode.NONE
    title_model: str = DEFAULT_MODEL
    sandbox_limits: SandboxLimits = field(default_factory=SandboxLimits)
    gateway_limits: GatewayLimits = field(default_factory=GatewayLimits)
    judge: bool | None = None
    judge_models: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenWorld:
    """The world, and who answers for the models."""

    world: World
    model_server: str
    routes: tuple[ModelRoute, ...] = ()
    """What agents may ask; a judge's own models are not among them."""


@asynccontextmanager
async def open_world(
    options: WorldOptions, tell: Callable[[str], None]
) -> AsyncIterator[OpenWorld]:
    """Open everything; `tell` gets a line for what the person should know.

    Raises ArenaError naming the first thing that is missing, with its remedy.
    """
    async with AsyncExitStack() as stack:
        titles = await asyncio.to_thread(title_similarity, options.titles, options.title_model)
        catalog = await asyncio.to_thread(open_catalog, options.catalog)
        isolation = await open_isolation(options.sandbox)
        stack.push_async_callback(isolation.close)
        for leftover in await isolation.reclaim():
            tell(f"removed what an earlier process left behind: {leftover}")
        routes, server = await _routes(stack, options)
        judge = await _judge(stack, options, routes, server, tell)
        # A judge is not an agent's to ask.
        routes = tuple(route for route in routes if route.model != STANDIN_JUDGE)
        models = ModelClient(routes)
        stack.push_async_callback(models.close)
        gateway = HttpGateway(catalog, models, limits=options.gateway_limits)
        stack.push_async_callback(gateway.close)
        model = choose_model(options.model, routes)
        if server == STANDIN:
            tell(f"no model server is given: the rule-based stand-in {model} answers")
        yield OpenWorld(
            World(
                catalog=catalog,
                gateway=gateway,
                isolation=isolation,
                titles=titles,
                model=model,
                sandbox_limits=options.sandbox_limits,
                gateway_limits=options.gateway_limits,
                judge=judge,
            ),
            server,
            routes,
        )


@asynccontextmanager
async def open_judge(
    options: WorldOptions, tell: Callable[[str], None]
) -> AsyncIterator[RunJudge | None]:
    """Only the judge, for runs that are over; `options` as for `open_world`."""
    async with AsyncExitStack() as stack:
        routes, server = await _routes(stack, options)
        yield await _judge(stack, options, routes, server, tell)


async def _judge(
    stack: AsyncExitStack,
    options: WorldOptions,
    routes: tuple[ModelRoute, ...],
    server: str,
    tell: Callable[[str], None],
) -> RunJudge | None:
    """Who judges, told in one line. Raises SettingsError when it cannot be done as asked."""
    if options.judge is False:
        tell("the runs go unjudged, as asked")
        return None
    settings = JudgeSettings()
    names = options.judge_models or settings.models
    if not names and server == STANDIN:
        names = (STANDIN_JUDGE,)
    remedy = "name a judge model with --judge-model or ARENA_JUDGE_MODELS"
    if not names:
        if options.judge:
            raise SettingsError("no judge model is named", remedy=remedy)
        tell(f"no judge model is named: the runs go unjudged ({remedy})")
        return None
    table = [*routes, *ModelSettings().routes()]
    chosen = [route for route in table if route.model in names]
    for name in names:
        if name not in {route.model for route in chosen}:
            raise SettingsError(f"no model server has the judge model {name}", remedy=remedy)
    client = ModelClient(dict.fromkeys(chosen))
    stack.push_async_callback(client.close)
    servers = ", ".join(sorted({route.server for route in chosen}))
    judge = RunJudge(client, settings.model_copy(update={"models": names}), servers)
    tell(f"the rule-based stand-in {judge.name} judges" if judge.is_standin
         else f"{judge.name} judges")  # fmt: skip
    return judge


def choose_model(asked: str | None, routes: tuple[ModelRoute, ...]) -> str:
    """The model that agents are told of. Raises SettingsError when it cannot be told which."""
    names = list(dict.fromkeys(route.model for route in routes))
    if asked is None and SHOPPER in names:
        return SHOPPER
    if asked is None and len(names) == 1:
        return names[0]
    listed = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
    if asked is None:
        raise SettingsError(
            "the model server has several models", remedy=f"choose one with --model: {listed}"
        )
    if asked not in names:
        raise SettingsError(f"no model server has {asked}", remedy=f"there are: {listed}")
    return asked


def http_address(url: str) -> str:
    """`url` of a model server. Raises SettingsError, without showing it, when it is none."""
    if not url.startswith(("http://", "https://")):
        raise SettingsError(
            "the model server's address is no http address",
            remedy="it looks like http://127.0.0.1:8000/v1",
        )
    return url


async def _routes(
    stack: AsyncExitStack, options: WorldOptions
) -> tuple[tuple[ModelRoute, ...], str]:
    """The table of models, and a name for who serves them: an address, or the stand-in."""
    settings = ModelSettings()
    url = options.model_url or settings.model_url
    if url is not None:
        routes = await discover(http_address(url), api_key=settings.model_key)
        return routes, server_name(url, Wire.OPENAI)
    table = settings.routes()
    if table:
        return table, ", ".join(sorted({route.server for route in table}))
    standin = await stack.enter_async_context(running_standin(load=[STANDIN_MODULE]))
    return await discover(standin, server=STANDIN, standin=True), STANDIN
