"""The app: everything that answers, and the tasks that run beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

import structlog
from fastapi import APIRouter, FastAPI
from fastapi.middleware import Middleware
from sqlalchemy.exc import SQLAlchemyError

from arena.api.auth import Authenticator
from arena.api.bodies import BodyGuard
from arena.api.errors import add_handlers
from arena.api.health import metrics_router
from arena.api.intake import RecordIntake
from arena.api.limits import RateLimit
from arena.api.nonces import PRUNE_EVERY_S, NonceStore
from arena.api.presence import Presence
from arena.api.requests import RequestGuard
from arena.api.routes import ROUTERS, body_limit
from arena.api.services import Services
from arena.api.sessions import SessionStore
from arena.submissions.service import Pace, SubmissionService

_log = structlog.get_logger(__name__)

VERSION = "1"


def create_app(services: Services, routers: Sequence[APIRouter] = ROUTERS) -> FastAPI:
    """The API over these services. Any number of apps may share a database."""
    settings = services.settings
    app = FastAPI(
        title="SN15 arena",
        version=VERSION,
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        middleware=[
            Middleware(
                RequestGuard,
                rate=RateLimit(settings.address_rate, settings.address_burst),
                metrics=services.metrics,
            ),
            Middleware(
                BodyGuard, limit=partial(body_limit, settings), seconds=settings.body_seconds
            ),
        ],
    )
    app.state.services = services
    app.state.authenticator = Authenticator(services)
    app.state.intake = RecordIntake(services)
    app.state.presence = Presence(services.engine)
    app.state.submissions = _submissions(services)
    add_handlers(app)
    for router in routers:
        app.include_router(router)
    if settings.metrics:
        app.include_router(metrics_router)
    return app


def _submissions(services: Services) -> SubmissionService:
    settings = services.settings
    return SubmissionService(
        services.engine,
        services.journal,
        policy=services.policy,
        shipped=services.shipped_agents,
        pace=Pace(settings.refusals_an_hour, settings.gate_waiting, settings.submissions_paused),
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    services: Services = app.state.services
    await services.metagraph.refresh()
    tasks = [
        asyncio.create_task(services.metagraph.run(), name="metagraph"),
        asyncio.create_task(_prune(services), name="prune"),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        await asyncio.to_thread(app.state.submissions.close)


async def _prune(services: Services) -> None:
    """Forget nonces, challenges and sessions whose time is over, again and again."""
    while True:
        try:
            await NonceStore(services.engine).prune(services.clock())
            await SessionStore(services.engine).prune(services.clock())
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            _log.warning("nonces are pruned later", error=type(error).__name__)
        await asyncio.sleep(PRUNE_EVERY_S)
