"""Open what rewriting needs: a model, by the operator's table or the stand-in, and sources."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from corpus_export.rewriting.job import Sources
from corpus_export.rewriting.rewriter import Rewriter
from corpus_export.rewriting.standin import MODULE, REWRITER
from sandbox.models import ModelClient, ModelSettings, discover
from sandbox.standin.process import running_standin
from sandbox.standin.registry import PREFIX

STANDIN = "stand-in"
"""The server's name when rules write instead of a model."""


@asynccontextmanager
async def open_rewriter(
    model: str | None, model_url: str | None
) -> AsyncIterator[tuple[Rewriter, bool]]:
    """A rewriter, and whether rules stand in for its model: they do when none is named.

    Raises ModelError where no server answers or none has the model.
    """
    name = model or REWRITER
    async with AsyncExitStack() as stack:
        standin = name.startswith(PREFIX)
        if standin:
            url = await stack.enter_async_context(running_standin(load=(MODULE,)))
            routes = [*await discover(url, server=STANDIN, standin=True)]
        else:
            settings = ModelSettings()
            routes = [*settings.routes()]
            url = model_url or settings.model_url or ""
            if url:
                routes += await discover(url, api_key=settings.model_key)
        client = ModelClient(routes)
        stack.push_async_callback(client.close)
        yield Rewriter(client, name), standin


def sources_in(directories: Sequence[Path]) -> Sources:
    """Sources by hash, from folders of agents' files: a race's `agents`, or an export's.

    A file counts by what it holds, whatever its name.
    """
    found: dict[str, str] = {}
    for directory in directories:
        for path in sorted(directory.glob("*.py")):
            content = path.read_bytes()
            found[hashlib.sha256(content).hexdigest()] = content.decode("utf-8", "replace")
    return found.get
