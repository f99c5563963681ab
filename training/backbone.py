"""Models: loaded from a directory or the hub, made from random weights, adapted, saved.

A directory that training wrote holds all that serving and the next stage need:
`model.safetensors`, `config.json`, the tokenizer's files and `training.json`, which says what
it was made of. Or an adapter (`adapter_model.safetensors`): then its base is found by the
name in `training.json`, and is refused when it is another one than it was.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from scoring.types import JsonObject
from training.exceptions import CheckpointError, OtherBaseError, TrainingError
from training.files import disk, read_json_file, write_json_file
from training.recipe import LoraSettings, SizeSettings
from training.tokenizing import load_tokenizer, tokenizer_hash

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

FACTS: Final = "training.json"
MODEL: Final = "model"
"""The model's folder within a run's directory."""
ADAPTER: Final = "adapter_model.safetensors"
SCHEMA: Final = "checkpoint-1"
_ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "o_proj")
_FEED_FORWARD: Final = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Base:
    """What a model was made of: a name for people, and the hash that decides."""

    name: str
    hash: str

    def to_json(self) -> JsonObject:
        """As `training.json` has it."""
        return {"name": self.name, "hash": self.hash}

    @classmethod
    def from_json(cls, value: object) -> Base:
        """Read what `to_json` wrote. Raises CheckpointError."""
        if not isinstance(value, dict) or not {"name", "hash"} <= value.keys():
            raise CheckpointError("a checkpoint does not say what it was made of")
        return cls(str(value["name"]), str(value["hash"]))


@dataclass(slots=True)
class Backbone:
    """A model and its tokenizer. `base` is what stands here; training makes another of it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    base: Base
    directory: Path | None = None

    @property
    def parameters(self) -> int:
        """How many weights there are, shared ones once."""
        return sum(p.numel() for p in self.model.parameters())


def resolve(directory: Path) -> Path:
    """The model's own directory: `directory` itself, or `model` in a run's."""
    inner = directory / MODEL
    return inner if (inner / "config.json").is_file() or (inner / ADAPTER).is_file() else directory


def load(
    name_or_path: str | Path,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | str = "cpu",
) -> Backbone:
    """The model in a directory, or of a hub's name; an adapter is merged into its base.

    `dtype` is that of its weights; by default the one they were saved in. In eval mode, as
    everything but an optimiser wants it. Raises CheckpointError, OtherBaseError or
    TokenizerError.
    """
    path = Path(name_or_path)
    if not path.is_dir():
        return _load_plain(str(name_or_path), None, dtype, device)
    directory = resolve(path)
    if (directory / ADAPTER).is_file():
        return _load_adapted(directory, dtype, device)
    return _load_plain(str(directory), directory, dtype, device)


def _load_plain(
    name: str, directory: Path | None, dtype: torch.dtype | None, device: torch.device | str
) -> Backbone:
    from transformers import AutoModelForCausalLM

    tokenizer = load_tokenizer(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                name, dtype=dtype or "auto", attn_implementation="sdpa"
            )
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointError(
            f"{name} gives no model: {' '.join(str(error).split())[:200]}",
            remedy="name a directory that holds config.json and model.safetensors",
        ) from error
    where = directory or _snapshot(name)
    model: PreTrainedModel = loaded.to(device).eval()
    # By its hash: the directory's path may differ from machine to machine.
    return Backbone(model, tokenizer, Base(name, weights_hash(where)), directory)


def _load_adapted(
    directory: Path, dtype: torch.dtype | None, device: torch.device | str
) -> Backbone:
    from peft import PeftModel

    facts = read_json_file(directory / FACTS)
    said = Base.from_json(facts.get("base"))
    below = load(said.name, dtype=dtype, device=device)
    if below.base.hash != said.hash:
        raise OtherBaseError(
            f"{directory} is an adapter of another base than {said.name} is now",
            remedy="put the base back that it was trained on, or save merged models",
        )
    adapted: Any = PeftModel.from_pretrained(below.model, str(directory))
    model: PreTrainedModel = adapted.merge_and_unload().eval()
    return Backbone(
        model, load_tokenizer(directory), Base(str(directory), weights_hash(directory)), directory
    )


def _snapshot(name: str) -> Path:
    """Where the hub's files of a name lie on this machine."""
    from transformers.utils.hub import cached_file

    found: str | None = cached_file(name, "config.json")
    if found is None:
        raise CheckpointError(f"{name} has no config.json")
    return Path(found).parent


def weights_hash(directory: Path) -> str:
    """SHA-256 over a model's configuration and weights, file by file."""
    whole = hashlib.sha256()
    names = sorted(
        path.name
        for path in directory.iterdir()
        if path.name.endswith(".safetensors") or path.name in ("config.json", "adapter_config.json")
    )
    if not any(name.endswith(".safetensors") for name in names):
        raise CheckpointError(f"{directory} holds no weights")
    for name in names:
        with (directory / name).open("rb") as file:
            whole.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()


def random_qwen3(size: SizeSettings, tokenizer: PreTrainedTokenizerBase, seed: int) -> Backbone:
    """A Qwen3 of this size from random weights: the same seed gives the same ones."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    # A round number of rows: some kernels are much faster so. The rest is never a target.
    vocabulary = -(-len(tokenizer) // 64) * 64
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.feed_forward,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        head_dim=size.head_width,
        max_position_embeddings=size.context,
        rope_parameters={"rope_type": "default", "rope_theta": size.rope_theta},
        tie_word_embeddings=size.tie,
        initializer_range=size.initial_scale,
        use_sliding_window=size.sliding_layers > 0,
        sliding_window=size.sliding_window,
        layer_types=[
            "sliding_attention" if layer < size.sliding_layers else "full_attention"
            for layer in range(size.layers)
        ],
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made: Any = Qwen3ForCausalLM(config)  # type: ignore[no-untyped-call]
        if size.initial_mean:
            shared = size.initial_mean * torch.randn(1, size.hidden)
            made.get_input_embeddings().weight.data.add_(shared)
    made.set_attn_implementation("sdpa")
    model: PreTrainedModel = made.eval()
    said = f"{size.model_dump_json()} {seed} {tokenizer_hash(tokenizer)}"
    name = f"random Qwen3, {size.layers} layers of {size.hidden}, seed {seed}"
    return Backbone(model, tokenizer, Base(name, hashlib.sha256(said.encode()).hexdigest()))


def add_lora(backbone: Backbone, settings: LoraSettings, seed: int) -> torch.nn.Module:
    """The model with adapters that alone are trained. Raises TrainingError."""
    import torch
    from peft import LoraConfig, get_peft_model

    modules = _ATTENTION if settings.targets == "attention" else (*_ATTENTION, *_FEED_FORWARD)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=cast("int", settings.alpha),
        lora_dropout=settings.dropout,
        target_modules=list(modules),
        bias="none",
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted: torch.nn.Module = get_peft_model(backbone.model, config)
    if not any(p.requires_grad for p in adapted.parameters()):
        raise TrainingError("the adapters found no layer to adapt")
    return adapted


def save(
    model: torch.nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    directory: Path,
    facts: JsonObject,
    *,
    form: Literal["merged", "adapter"] = "merged",
) -> None:
    """Write a model into an empty directory, with its tokenizer and `training.json`.

    An adapted model is merged into its base, or its adapter alone is written; a merged model
    is changed by it. To be called inside `training.files.write_directory`. Raises
    CheckpointError or DiskFullError.
    """
    written: Any = model
    if hasattr(model, "merge_and_unload") and form == "merged":
        written = written.merge_and_unload()
    with disk(directory):
        written.save_pretrained(str(directory))
        tokenizer.save_pretrained(str(directory))
    write_json_file(directory / FACTS, {"schema": SCHEMA, **facts})


def facts_of(directory: Path) -> JsonObject:
    """What `training.json` in a model's or a run's directory says. Raises CheckpointError."""
    facts = read_json_file(resolve(directory) / FACTS)
    if facts.get("schema") != SCHEMA:
        raise CheckpointError(
            f"{directory} is a checkpoint of schema {str(facts.get('schema'))[:40]!r}, not {SCHEMA}"
        )
    return facts
