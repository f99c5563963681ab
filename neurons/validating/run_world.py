"""The world of one run: the validator's own, with what its claim brings for it alone.

A miner's credential is used for the server of the operator's table that it belongs to and for
no other, and is gone with the run. A model that an agent brings is served here while the run
lasts. Neither ever stands in a record or a log.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import structlog

from arena.client.session import ArenaSession
from arena.client.validator import Claim, InferenceCredential
from arena.exceptions import ArtefactError, Fault
from arena.runs.execution import World
from arena.runs.opening import OpenWorld
from neurons.validating.exceptions import RunGivenUpError
from neurons.validating.unservable import Unservable
from sandbox.gateway import HttpGateway
from sandbox.models import ModelClient, ModelRoute

_log = structlog.get_logger(__name__)

ARTEFACTS = "neurons.validating.artefacts"


@dataclass(frozen=True, slots=True)
class RunWorld:
    """A world for one run. `lent`: its agent's calls are paid by its miner."""

    world: World
    model_server: str
    lent: bool = False


@asynccontextmanager
async def world_for(
    opened: OpenWorld, claim: Claim, *, session: ArenaSession, data_dir: Path
) -> AsyncIterator[RunWorld]:
    """The world of a claimed run, closed afterwards. A model's files come through `session`
    and are kept in `data_dir`.

    Where a model that the agent brings cannot be served by its own fault, every run fails with
    that reason. Raises ArenaError when the fault is another's.
    """
    judge = opened.world.judge
    world = replace(opened.world, judge=judge.renewed() if judge else None)
    routes, server, model = opened.routes, opened.model_server, world.model
    lent = False
    async with AsyncExitStack() as stack:
        if claim.credential is not None:
            routes, lent = lend(routes, claim.credential)
        if claim.artefact is not None:
            try:
                route = await _served(stack, claim, session, data_dir)
            except ArtefactError as error:
                if error.fault is not Fault.AGENT:
                    raise
                _log.warning("a model cannot be served", code=error.code, error=error.message)
                world = replace(world, isolation=Unservable(world.isolation, error.info))
            else:
                routes, server, model = (*routes, route), route.server, route.model
        if routes is not opened.routes:
            models = ModelClient(routes)
            stack.push_async_callback(models.close)
            gateway = HttpGateway(world.catalog, models, limits=world.gateway_limits)
            stack.push_async_callback(gateway.close)
            world = replace(world, gateway=gateway, model=model)
        yield RunWorld(world, server, lent)


def lend(
    routes: tuple[ModelRoute, ...], credential: InferenceCredential
) -> tuple[tuple[ModelRoute, ...], bool]:
    """The table with a miner's credential where it belongs, and whether that is anywhere.

    Only servers of the operator's table answer: a server that a miner names could claim
    anything. So the credential's address chooses among them, and adds none.
    """
    found = tuple(
        replace(route, api_key=credential.token) if _belongs(route, credential) else route
        for route in routes
    )
    if found == routes:
        _log.warning(
            "a miner's credential fits no server of the table: the validator's own are asked",
            provider=credential.provider,
        )
        return routes, False
    return found, True


def _belongs(route: ModelRoute, credential: InferenceCredential) -> bool:
    if route.standin:
        return False
    host = _host(route.base_url)
    if credential.base_url is not None:
        return host is not None and host == _host(credential.base_url)
    provider = credential.provider.lower()
    labels = (host or "").split(".")
    return bool(provider) and (provider in labels or provider == route.server.lower())


def _host(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        return (urlsplit(url).hostname or "").lower() or None
    except ValueError:
        return None


async def _served(
    stack: AsyncExitStack, claim: Claim, session: ArenaSession, data_dir: Path
) -> ModelRoute:
    try:  # what serves models is imported when an agent brings one
        artefacts = importlib.import_module(ARTEFACTS)
    except ImportError as error:
        raise RunGivenUpError("this validator cannot serve a model that an agent brings") from error
    route = await stack.enter_async_context(
        artefacts.served(claim.artefact, session=session, data_dir=data_dir)
    )
    assert isinstance(route, ModelRoute)
    return route
