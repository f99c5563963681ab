"""A model that an agent brings, served here while its runs last.

Its files are fetched by hash, verified, and given to the operator's model server on a port
of loopback. The gateway then routes the agent's calls to it under the artefact's hash, so
every record says which model answered.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from arena.client.session import ArenaSession
from arena.exceptions import ArtefactError, Fault
from arena.settings import load_settings
from arena.submissions.artefacts import Kind, Manifest
from neurons.validating.artefact_cache import ArtefactCache, sources
from neurons.validating.artefact_settings import (
    GIB,
    ArtefactSettings,
    argv_of,
    load_artefact_settings,
)
from neurons.validating.model_server import (
    ModelServer,
    clean_environment,
    free_port,
    running_server,
)
from sandbox.exceptions import ModelError
from sandbox.models import ModelRoute, discover
from scoring.types import Json

_log = structlog.get_logger(__name__)

CACHE = "artefacts"
NO_MODEL = "artefact.no_model"


@asynccontextmanager
async def served(
    artefact: Manifest | Mapping[str, Json],
    *,
    session: ArenaSession | None = None,
    settings: ArtefactSettings | None = None,
    data_dir: Path | None = None,
) -> AsyncIterator[ModelRoute]:
    """A route to the artefact's model, named by its hash, while the context lasts.

    `session` fetches what lies in the arena's store. Raises ArtefactError with its fault:
    the agent's for an artefact that may not be served or cannot be loaded, else the
    validator's or the arena's, to be tried again.
    """
    settings = settings or load_artefact_settings()
    limits = settings.limits()
    given = artefact.to_json() if isinstance(artefact, Manifest) else dict(artefact)
    manifest = Manifest.of(given, limits)  # held against this validator's own limits
    directory = (data_dir or load_settings().data_dir) / CACHE
    cache = ArtefactCache(
        directory.resolve(), max_bytes=int(settings.cache_gib * GIB), limits=limits
    )
    source_of = sources(settings.hub_endpoint, settings.hub_token, session)
    async with AsyncExitStack() as stack:
        model, base = await stack.enter_async_context(cache.laid_out(manifest, source_of))
        home = Path(stack.enter_context(TemporaryDirectory(prefix="model-")))
        port = free_port()
        values = {
            "dir": str(model),
            "base": str(base or model),
            "name": manifest.hash,
            "port": str(port),
            "context": str(manifest.context),
            "dtype": manifest.dtype,
        }
        template = settings.adapter_command if manifest.kind is Kind.ADAPTER else settings.command
        server = await stack.enter_async_context(
            running_server(
                argv_of(template, values),
                port=port,
                environment=clean_environment(home, settings.pass_env),
                directory=home,
                health_path=settings.health_path,
                load_s=settings.load_seconds,
                memory_bytes=int(settings.memory_gib * GIB),
            )
        )
        route = await _route(server, manifest, settings)
        _log.info("a model is served", artefact=manifest.hash, name=manifest.name)
        yield route


async def _route(server: ModelServer, manifest: Manifest, settings: ArtefactSettings) -> ModelRoute:
    try:
        listed = await discover(server.base_url)
    except ModelError as error:
        raise ArtefactError(
            f"the model server lists no model: {error.message}",
            code=NO_MODEL,
            fault=Fault.VALIDATOR,
        ) from None
    names = [route.model for route in listed]
    return ModelRoute(
        manifest.hash,
        f"artefact:{manifest.hash[:16]}",
        base_url=server.base_url,
        upstream_model=manifest.hash if manifest.hash in names else names[0],
        timeout_s=settings.request_seconds,
        concurrency=settings.concurrency,
    )
