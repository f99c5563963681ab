"""From scored rows to a trained process-reward head on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from scoring.types import Json, JsonObject
from training.backbone import load
from training.corpus import Guard
from training.exceptions import RewardError
from training.files import read_json_file
from training.kto.running import weights_dtype
from training.optimising.loop import choose_device, compute_dtype
from training.recipe import LoopSettings
from training.render.chat import ChatRenderer
from training.render.rows import render_rows
from training.rewards.process import (
    FACTS,
    Example,
    HeadSettings,
    Measured,
    save_head,
    targets_of,
    train_head,
    turn_states,
)

CAPACITY = 16_384
"""Tokens of one forward pass."""


@dataclass(frozen=True, slots=True)
class HeadTask:
    """What a head is trained on, for which model, into which directory."""

    rows: Sequence[Mapping[str, Json]]
    guard: Guard
    start: str
    settings: HeadSettings
    max_tokens: int
    out: Path


def run_head(task: HeadTask) -> tuple[JsonObject, Measured | None]:
    """Train a head and write it; its facts, and how good it is on held-out clusters.

    Raises GuardError for rows that must not be learnt from, RewardError when they all came
    out alike.
    """
    for row in task.rows:
        task.guard.admit(str(row["problem_id"]), str(row["cluster"]))
    loop = LoopSettings()
    device = choose_device(loop)
    backbone = load(task.start, dtype=weights_dtype(None, device), device=device)
    rendered = render_rows(task.rows, ChatRenderer(backbone.tokenizer), task.max_tokens)
    if not rendered.samples:
        raise RewardError(f"none of {len(task.rows)} rows has at most {task.max_tokens} tokens")
    targets = {str(row.get("record_hash") or row.get("row")): targets_of(row) for row in task.rows}
    states = turn_states(backbone.model, rendered.samples, CAPACITY, compute_dtype(loop, device))
    examples = [
        Example(here, targets[sample.row], sample.cluster)
        for sample, here in zip(rendered.samples, states, strict=True)
    ]
    head, measured = train_head(examples, task.settings)
    facts: JsonObject = {
        "settings": cast("JsonObject", asdict(task.settings)),
        "trajectories": rendered.to_json(),
        "successes": sum(bool(example.targets[-1]) for example in examples),
        "measured": measured.to_json() if measured else None,
    }
    save_head(head, task.out, backbone.base.hash, facts)
    return read_json_file(task.out / FACTS), measured
