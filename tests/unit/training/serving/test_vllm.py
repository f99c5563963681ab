"""The command that hands a checkpoint to vLLM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from training.exceptions import CheckpointError, ServingError
from training.serving.cli import EngineKind, served_by_vllm
from training.serving.vllm import Address, slides, vllm_argv

ADDRESS = Address("shop", "127.0.0.1", 8123)


def option(argv: list[str], name: str) -> str:
    return argv[argv.index(name) + 1]


def test_a_model_is_served_with_calls_and_thinking_parsed(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 40_960}))
    argv = vllm_argv(tmp_path, ADDRESS)
    assert argv[argv.index("serve") + 1] == str(tmp_path)
    assert "--enable-auto-tool-choice" in argv
    assert option(argv, "--tool-call-parser") == "hermes"
    assert option(argv, "--reasoning-parser") == "qwen3"
    assert option(argv, "--max-model-len") == "32768"
    assert option(argv, "--served-model-name") == "shop"
    assert option(argv, "--port") == "8123"


def test_a_model_with_a_window_is_known_by_its_layers(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    assert not slides(tmp_path), "a hub's model is what its name says"
    config.write_text(json.dumps({"layer_types": ["full_attention", "full_attention"]}))
    assert not slides(tmp_path)
    config.write_text(json.dumps({"layer_types": ["sliding_attention", "full_attention"]}))
    assert slides(tmp_path)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"")
    (adapter / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(tmp_path), "r": 4})
    )
    assert slides(adapter)


@pytest.mark.parametrize(
    ("engine", "available", "window", "said"),
    [
        (EngineKind.AUTO, True, False, True),
        (EngineKind.AUTO, True, True, False),
        (EngineKind.AUTO, False, False, False),
        (EngineKind.VLLM, True, False, True),
        (EngineKind.OWN, True, False, False),
    ],
)
def test_vllm_serves_where_it_can_and_serves_the_model_as_it_was_trained(
    engine: EngineKind, available: bool, window: bool, said: bool
) -> None:
    assert served_by_vllm(engine, lambda: available, lambda: window) is said


@pytest.mark.parametrize(
    ("available", "window", "said"), [(False, False, "not installed"), (True, True, "a window")]
)
def test_vllm_that_is_asked_for_and_cannot_is_refused(
    available: bool, window: bool, said: str
) -> None:
    with pytest.raises(ServingError, match=said):
        served_by_vllm(EngineKind.VLLM, lambda: available, lambda: window)


def test_a_small_models_context_and_one_that_is_asked_for_hold(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 8_192}))
    assert option(vllm_argv(tmp_path, ADDRESS), "--max-model-len") == "8192"
    assert option(vllm_argv(tmp_path, ADDRESS, 4_096), "--max-model-len") == "4096"


def test_an_adapter_is_served_over_its_base(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"r": 32, "base_model_name_or_path": "Qwen/Qwen3-4B"})
    )
    argv = vllm_argv(tmp_path, ADDRESS)
    assert argv[argv.index("serve") + 1] == "Qwen/Qwen3-4B"
    assert option(argv, "--max-lora-rank") == "32"
    assert option(argv, "--lora-modules") == f"shop={tmp_path}"


def test_an_adapter_of_nobody_knows_what_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_model.safetensors").write_bytes(b"")
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="base"):
        vllm_argv(tmp_path, ADDRESS)
