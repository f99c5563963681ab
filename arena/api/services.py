"""What the routes work with, given to the app once when it is made.

A route says `services: ServicesDep` and has all of it. Nothing here is global: a test makes
two apps over one database by making two of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.api.links import Links
from arena.api.metagraph import MetagraphCache
from arena.api.metrics import Metrics
from arena.api.objects import ObjectStore
from arena.api.settings import ApiSettings
from arena.journal import Journal
from arena.records.store import RecordStore
from arena.secrets import SecretBox
from arena.submissions.policy import Policy
from arena.work.queue import WorkQueue

TRUSTED_S = 1.0
"""`open_database(settings, trusted_s=TRUSTED_S)`: what the API gives its database. Asking
every connection before every use would cost a third of an upload."""
Clock = Callable[[], datetime]
"""The time now, in UTC."""


def utc_now() -> datetime:
    """The clock of a real process."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Services:
    """Everything behind the API. Any number of processes may serve with the same database."""

    settings: ApiSettings
    engine: AsyncEngine
    queue: WorkQueue
    records: RecordStore
    journal: Journal
    objects: ObjectStore
    metagraph: MetagraphCache
    links: Links
    clock: Clock = utc_now
    secrets: SecretBox | None = None
    """Seals what miners entrust to the arena; without it their credentials are refused."""
    policy: Policy = field(default_factory=Policy)
    """The gate's rules."""
    shipped_agents: Mapping[str, Path] = field(default_factory=dict)
    """Agents that anyone may build on, by the names that the policy has for them."""
    metrics: Metrics = field(default_factory=Metrics)


def services_of(request: Request) -> Services:
    """The services of the app that answers this request."""
    return cast("Services", request.app.state.services)


ServicesDep = Annotated[Services, Depends(services_of)]
