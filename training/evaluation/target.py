"""What is evaluated: a model server's address, a checkpoint directory, or the stand-in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from arena.runs.opening import choose_model, http_address
from sandbox.models import ModelRoute, ModelSettings, discover
from sandbox.models.routes import Wire, server_name
from sandbox.standin.process import running_standin
from training.evaluation.served import running_model
from training.exceptions import EvaluationError, ExtraMissingError

STANDIN = "standin"
"""The target that means the rule-based stand-in models."""


@dataclass(frozen=True, slots=True)
class Target:
    """A model that answers. `checkpoint` is the hash of a local one's files, else None."""

    url: str
    routes: tuple[ModelRoute, ...]
    model: str
    checkpoint: str | None
    label: str


@asynccontextmanager
async def open_target(
    asked: str, model: str | None, tell: Callable[[str], None]
) -> AsyncIterator[Target]:
    """A server for the target while the context lasts; a checkpoint is served by a child.

    Raises EvaluationError for what is neither an address nor a checkpoint, ModelError for a
    server that does not answer.
    """
    async with AsyncExitStack() as stack:
        key, checkpoint = ModelSettings().model_key, None
        standin = asked == STANDIN
        if standin:
            url, server = await stack.enter_async_context(running_standin()), STANDIN
        elif asked.startswith(("http://", "https://")):
            url = http_address(asked)
            server = server_name(url, Wire.OPENAI)
        else:
            directory, checkpoint = await asyncio.to_thread(_checkpoint, Path(asked))
            # A run's model lies in RUN/model: the run's name says more.
            named = directory.parent if directory.name == "model" else directory
            server, key = named.name, None
            tell(f"serving {directory} in a process of its own")
            url = await stack.enter_async_context(running_model(directory, server))
        routes = await discover(url, api_key=key, server=server, standin=standin)
        name = choose_model(model, routes)
        label = name if checkpoint is None else server
        yield Target(url, routes, name, checkpoint, label)


def _checkpoint(path: Path) -> tuple[Path, str]:
    """A checkpoint's directory and the hash of its weights."""
    if not path.is_dir():
        raise EvaluationError(
            f"{path} is neither an address nor a checkpoint's directory",
            remedy="give http://…/v1, a directory that `arena train` wrote, or"
            f" `{STANDIN}` for the rule-based models",
        )
    try:
        # Here: only a checkpoint needs the extra.
        from training.backbone import weights_hash
        from training.serving.checkpoint import checkpoint_directory
    except ModuleNotFoundError as error:
        raise ExtraMissingError(
            f"a checkpoint needs {error.name}, which is not installed",
            remedy="install the trainer with `make training`",
        ) from error
    return path.resolve(), weights_hash(checkpoint_directory(path))
