"""vLLM where there is a GPU and it is installed: the same checkpoint, the same wire.

It renders prompts with the chat template of the checkpoint's tokenizer and parses calls by
its own parsers (`hermes`, `qwen3`), which agree with ours on Qwen3's format. What it does not
do is make marks inside product texts harmless: agents that use it do that themselves, as the
distilled one does.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from scoring.types import JsonObject
from training.backbone import ADAPTER, FACTS
from training.exceptions import CheckpointError
from training.files import read_json_file

MAX_CONTEXT: Final = 32_768
"""What the paper serves with; a smaller model's own context stays."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and under which name the model is served. Port 0 is any free one."""

    name: str
    host: str = "127.0.0.1"
    port: int = 8000


def vllm_available() -> bool:
    """Whether vLLM is installed and a CUDA device is at hand."""
    if importlib.util.find_spec("vllm") is None and shutil.which("vllm") is None:
        return False
    import torch

    return torch.cuda.is_available()


def slides(directory: Path) -> bool:
    """Whether some layers of a model see a window only.

    vLLM's Qwen3 gave every layer full attention whatever its `layer_types` said, without a
    word (vllm-project/vllm#39514): such a model answers wrongly there.
    """
    where = Path(_adapted(directory)[0]) if (directory / ADAPTER).is_file() else directory
    if not (where / "config.json").is_file():
        return False
    layers = read_json_file(where / "config.json").get("layer_types")
    return isinstance(layers, list) and "sliding_attention" in layers


def vllm_argv(directory: Path, address: Address, context: int | None = None) -> list[str]:
    """The command that serves a checkpoint, or an adapter over its base.

    `vllm serve` with tool calls by `hermes` and thinking by `qwen3`. Raises CheckpointError
    for an adapter that does not say what it adapts.
    """
    served, more = str(directory), ["--served-model-name", address.name]
    where = directory
    if (directory / ADAPTER).is_file():
        served, rank = _adapted(directory)
        where = Path(served)
        more = ["--enable-lora", "--max-lora-rank", str(rank), "--lora-modules"]
        more.append(f"{address.name}={directory}")
    length = context or _context(where)
    return [
        *_program(), "serve", served,
        "--host", address.host, "--port", str(address.port),
        "--max-model-len", str(length),
        "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
        "--reasoning-parser", "qwen3",
        # Sampling is what a request says, as here, not what a base's author recommends.
        "--generation-config", "vllm",
        *more,
    ]  # fmt: skip


def exec_vllm(argv: list[str]) -> None:
    """Become that command: signals and the exit code are its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvp(argv[0], argv)  # noqa: S606 - a list, never a shell


def _program() -> list[str]:
    found = shutil.which("vllm")
    return [found] if found else [sys.executable, "-m", "vllm.entrypoints.cli.main"]


def _adapted(directory: Path) -> tuple[str, int]:
    """The base of an adapter, and its rank."""
    settings = read_json_file(directory / "adapter_config.json")
    facts = read_json_file(directory / FACTS) if (directory / FACTS).is_file() else {}
    said = facts.get("base")
    base = said.get("name") if isinstance(said, dict) else settings.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise CheckpointError(f"{directory} does not say which base it adapts")
    rank = settings.get("r")
    return base, rank if isinstance(rank, int) else 16


def _context(where: Path) -> int:
    """The context of a model's directory within `MAX_CONTEXT`; that, for a hub's name."""
    config: JsonObject = {}
    if (where / "config.json").is_file():
        config = read_json_file(where / "config.json")
    known = cast("int", config.get("max_position_embeddings", MAX_CONTEXT))
    return min(known, MAX_CONTEXT)
