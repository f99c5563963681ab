"""All routers of the API, in the order in which they are tried.

A room that adds routes writes `router = APIRouter(prefix="/v1/…", tags=[…])` in a module of
its own and puts it here. A route takes `services: ServicesDep` (`arena/api/services.py`), a
caller as `MinerDep` or `ValidatorDep` (`arena/api/auth.py`), names its refusals for OpenAPI
with `responses=responses(404, 409)` and refuses with `raise Refusal(Code.…, "why")`
(`arena/api/errors.py`). A path with bodies larger than `body_bytes` names its limit in
`body_limit`.
"""

from __future__ import annotations

from fastapi import APIRouter

from arena.api import (
    artefacts,
    auth_routes,
    environments,
    health,
    miner_agents,
    miner_credentials,
    miner_logs,
    miner_submit,
    object_routes,
    public_agents,
    public_artifacts,
    public_not_offered,
    public_races,
    public_standings,
    public_suites,
    public_work,
    record_routes,
    transparency,
    validator,
    weights,
)
from arena.api.settings import ApiSettings

ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    auth_routes.router,
    validator.router,
    record_routes.router,
    weights.router,
    environments.router,
    object_routes.router,
    artefacts.router,
    transparency.router,
    miner_submit.router,
    miner_agents.router,
    miner_credentials.router,
    miner_logs.router,
    public_standings.router,
    public_races.router,
    public_suites.router,
    public_agents.router,
    public_work.router,
    public_artifacts.router,
    public_not_offered.router,
)


def body_limit(settings: ApiSettings, path: str) -> int:
    """The largest body that a path takes, in bytes."""
    if path == "/v1/validator/records":
        return settings.records_bytes
    if path.startswith("/v1/objects/"):
        return settings.upload_bytes
    if path == "/v1/miner/submit":
        return settings.submission_bytes
    return settings.body_bytes
