"""A gateway session with an HTTP client on its socket, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from sandbox.catalog.interface import Catalog
from sandbox.gateway import GatewayLimits, HttpGateway
from sandbox.gateway.http import HttpBounds
from sandbox.gateway.session import Session
from sandbox.models import ModelClient, ModelRoute, RetryPolicy
from tests.unit.sandbox.provider import Provider
from tests.unit.sandbox.worlds import WordCatalog

IMPATIENT = RetryPolicy(tries=2, base_s=0.001, cap_s=0.002, lasting_rest_s=0.001)


@dataclass(slots=True)
class Door:
    """A session and a client that speaks to it over HTTP on its Unix socket."""

    gateway: HttpGateway
    session: Session
    http: httpx.AsyncClient


def http_client(session: Session) -> httpx.AsyncClient:
    """An HTTP client whose every connection goes to the session's socket."""
    transport = httpx.AsyncHTTPTransport(uds=str(session.socket))
    return httpx.AsyncClient(transport=transport, base_url="http://proxy", timeout=30.0)


@asynccontextmanager
async def door(
    catalog: Catalog | None = None,
    provider: Provider | None = None,
    *,
    limits: GatewayLimits | None = None,
    bounds: HttpBounds | None = None,
    usd_out: float = 0.0,
    usd_in: float = 0.0,
) -> AsyncIterator[Door]:
    """Open a gateway and one session of it."""
    route = ModelRoute(
        "m", "fake", provider.url if provider else None, usd_in=usd_in, usd_out=usd_out
    )
    models = ModelClient([route] if provider else [], retry=IMPATIENT)
    gateway = HttpGateway(catalog or WordCatalog(), models, limits=limits, bounds=bounds)
    try:
        async with gateway.session("run") as session, http_client(session) as http:
            yield Door(gateway, session, http)
    finally:
        await gateway.close()
        await models.close()
