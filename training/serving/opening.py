"""A checkpoint opened for generation: backbone, renderer, engine, policy, chat model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from training.backbone import Backbone, load
from training.exceptions import CheckpointError
from training.generation.engine import Engine, EngineLimits
from training.generation.policy import EnginePolicy
from training.render.chat import ChatRenderer
from training.serving.chat import ChatModel

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that can be asked, by tokens or by messages."""

    backbone: Backbone
    renderer: ChatRenderer
    policy: EnginePolicy
    chat: ChatModel


def device_of(name: str) -> torch.device:
    """The device of a recipe or an option; `auto` is the GPU where there is one."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def dtype_of(name: str, device: torch.device) -> torch.dtype | None:
    """What weights are held in; `auto` is bfloat16 on a GPU, elsewhere as they were saved."""
    import torch

    if name == "auto":
        return torch.bfloat16 if device.type == "cuda" else None
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise CheckpointError(f"{name} is no type of numbers", remedy="auto, float32 or bfloat16")
    return dtype


@asynccontextmanager
async def open_backbone(
    backbone: Backbone, *, name: str, limits: EngineLimits | None = None
) -> AsyncIterator[Opened]:
    """What answers for a backbone that is at hand, until the context ends."""
    renderer = ChatRenderer(backbone.tokenizer)
    policy = EnginePolicy(Engine(backbone.model, limits), renderer.stop_ids)
    try:
        yield Opened(backbone, renderer, policy, ChatModel(name, renderer, policy, policy.context))
    finally:
        await policy.close()


def load_checkpoint(
    name_or_path: str | Path, *, device: str = "auto", dtype: str = "auto"
) -> Backbone:
    """The backbone of a directory, or of a hub's name. Raises CheckpointError and its kin."""
    where = device_of(device)
    return load(name_or_path, dtype=dtype_of(dtype, where), device=where)
