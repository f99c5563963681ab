"""`/health`, `/health/deep` and `/metrics`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from arena.api.errors import responses
from arena.api.services import Services, ServicesDep
from arena.api.ticks import CONDUCTOR, last_tick
from arena.exceptions import ArenaError

router = APIRouter(tags=["health"])
metrics_router = APIRouter(tags=["health"])


class Health(BaseModel):
    """This process answers."""

    status: Literal["ok"] = "ok"


class Part(BaseModel):
    """One part. `age_s` is how long ago it was last heard of."""

    ok: bool
    detail: str = ""
    age_s: float | None = None


class DeepHealth(BaseModel):
    """All parts. `status` is `ok`, `degraded` (served from what is left) or `failing`."""

    status: Literal["ok", "degraded", "failing"]
    database: Part
    store: Part
    chain: Part
    conductor: Part


@router.get("/health")
async def health_check() -> Health:
    """Whether this process answers. It asks nobody."""
    return Health()


@router.get("/health/deep", responses={**responses(), 503: {"model": DeepHealth}})
async def deep_health_check(services: ServicesDep, response: Response) -> DeepHealth:
    """Whether everything behind it does: 503 when requests would fail."""
    database, conductor = await _database(services)
    store, chain = await _store(services), _chain(services)
    status: Literal["ok", "degraded", "failing"] = "ok"
    if not (database.ok and store.ok) or services.metagraph.last is None or _too_old(services):
        status, response.status_code = "failing", 503
    elif not (chain.ok and conductor.ok):
        status = "degraded"
    return DeepHealth(
        status=status, database=database, store=store, chain=chain, conductor=conductor
    )


@metrics_router.get("/metrics", response_class=Response, include_in_schema=False)
async def metrics(services: ServicesDep) -> Response:
    """For Prometheus."""
    return Response(generate_latest(services.metrics.registry), media_type=CONTENT_TYPE_LATEST)


async def _database(services: Services) -> tuple[Part, Part]:
    """The database, and the conductor's last sign of life in it."""
    try:
        async with services.engine.connect() as connection:
            await connection.scalar(select(1))
            tick = await last_tick(connection, CONDUCTOR)
    except (SQLAlchemyError, OSError, TimeoutError):
        down = Part(ok=False, detail="does not answer")
        return down, Part(ok=False, detail="unknown")
    return Part(ok=True), _conductor(services, tick)


def _conductor(services: Services, tick: datetime | None) -> Part:
    if tick is None:
        return Part(ok=False, detail="has not run yet")
    age = (services.clock() - tick).total_seconds()
    late = age > services.settings.conductor_patience
    return Part(ok=not late, detail="late" if late else "", age_s=age)


async def _store(services: Services) -> Part:
    try:
        await services.objects.check()
    except (ArenaError, OSError, TimeoutError):
        return Part(ok=False, detail="does not answer")
    return Part(ok=True)


def _chain(services: Services) -> Part:
    cache = services.metagraph
    age = cache.age_s()
    if age is None:
        return Part(ok=False, detail="has not answered yet")
    if cache.failed is not None:
        return Part(ok=False, detail=f"the last metagraph is served ({cache.failed})", age_s=age)
    return Part(ok=True, age_s=age)


def _too_old(services: Services) -> bool:
    age = services.metagraph.age_s()
    return age is not None and age > services.settings.metagraph_max_age
