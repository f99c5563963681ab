"""Directories that are model artefacts: small, and whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "max_position_embeddings": 4_096,
    "dtype": "bfloat16",
}
TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0, "auto_map": 1}}}


def safetensors(tensors: Mapping[str, tuple[str, list[int], bytes]]) -> bytes:
    """A safetensors file, written by the format's rules."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    return with_header(json.dumps(header).encode(), data)


def with_header(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


def weights(size: int = 64, seed: int = 0) -> bytes:
    """A tensor of so many bytes."""
    content = bytes((seed + i * 7) % 256 for i in range(size))
    return safetensors({"w": ("U8", [size], content)})


def model_directory(directory: Path, *, size: int = 64, seed: int = 0) -> Path:
    """A whole model."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(CONFIG))
    (directory / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (directory / "model.safetensors").write_bytes(weights(size, seed))
    return directory


def adapter_directory(directory: Path, base: str) -> Path:
    """A LoRA adapter for a base by name."""
    directory.mkdir(parents=True, exist_ok=True)
    config = {"peft_type": "LORA", "r": 16, "base_model_name_or_path": base}
    (directory / "adapter_config.json").write_text(json.dumps(config))
    (directory / "adapter_model.safetensors").write_bytes(weights())
    return directory
