"""Supervised fine-tuning: tokens a second, ours against plain TRL on the same samples.

    python -m benchmarks.training --corpus DIR [--samples 24] [--rounds 2] [--json FILE]

The samples are rendered once; both train the same random model on them with AdamW, float32, the
same number of samples an update and the loss on the assistant's tokens. TRL's SFTTrainer gets
them as `input_ids` and `assistant_masks`: one sample a forward pass with accumulation, where
nothing is padded, and four padded to the longest. The sides take turns; what is compared is
tokens of samples (no padding counted) per second of the process's CPU time, since a busy
machine slows the clock.
"""

from __future__ import annotations

import argparse
import json
import logging
import platform
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch

from scoring.types import JsonObject
from training.backbone import Backbone, random_qwen3
from training.corpus import open_corpus
from training.optimising.loop import Run, optimise
from training.recipe import (
    BaseSettings,
    BatchSettings,
    LoopSettings,
    OptimiserSettings,
    SizeSettings,
    TokenizerSettings,
)
from training.render.chat import ChatRenderer
from training.render.checking import Scaffold
from training.render.rows import render_rows
from training.sft.objective import SftObjective
from training.sft.recipe import SftSettings
from training.sft.running import small_tokenizer
from training.types import Sample

Times: TypeAlias = tuple[float, float]
SIZE = SizeSettings(hidden=256, layers=4, heads=4, kv_heads=2, head_width=64, feed_forward=704)
AN_UPDATE = 4


class Silent:
    """Watches a run and says nothing."""

    def began(self, total: int, done: int) -> None:
        """Nothing."""

    def updated(self, done: int, values: Mapping[str, float]) -> None:
        """Nothing."""


def samples_of(corpus: Path, count: int) -> tuple[Backbone, list[Sample]]:
    """A random model with a tokenizer of the corpus, and its first samples."""
    rows = list(open_corpus(corpus).train())
    base = BaseSettings(size=SIZE, tokenizer=TokenizerSettings(vocabulary=6_144))
    tokenizer = small_tokenizer(base, rows)
    rendered = render_rows(rows[:count], ChatRenderer(tokenizer), 1_000_000)
    return random_qwen3(SIZE, tokenizer, seed=0), rendered.samples


def ours(backbone: Backbone, samples: Sequence[Sample]) -> Times:
    """One epoch in the loop, packed."""
    settings = SftSettings(
        optimiser=OptimiserSettings(learning_rate=1e-4),
        batch=BatchSettings(samples=AN_UPDATE, tokens_per_forward=16_384),
        loop=LoopSettings(dtype="float32", device="cpu", checkpoint_every=10**6),
        held_out=0.0,
    )
    objective = SftObjective(
        samples, settings, 0, Scaffold.of(backbone.tokenizer), lambda sample: None
    )
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder), "benchmark", 0, settings.optimiser, settings.loop)
        return measured(lambda: optimise(backbone.model, objective, run, Silent()))


def trl(backbone: Backbone, samples: Sequence[Sample], *, together: int) -> Times:
    """One epoch of TRL's SFTTrainer, `together` samples a forward pass."""
    from datasets import Dataset  # type: ignore[import-untyped]
    from trl import SFTConfig, SFTTrainer  # type: ignore[attr-defined]

    data = Dataset.from_dict(
        {
            "input_ids": [s.ids.tolist() for s in samples],
            "assistant_masks": [s.mask.astype(int).tolist() for s in samples],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        config = SFTConfig(
            output_dir=folder,
            per_device_train_batch_size=together,
            gradient_accumulation_steps=AN_UPDATE // together,
            max_length=None,
            learning_rate=1e-4,
            num_train_epochs=1,
            bf16=False,
            use_cpu=True,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_pin_memory=False,
        )
        trainer: Any = SFTTrainer(
            model=backbone.model,
            args=config,
            train_dataset=data,
            processing_class=backbone.tokenizer,
        )
        return measured(trainer.train)


def measured(run: Callable[[], object]) -> Times:
    """CPU seconds and seconds by the clock: of training alone, without what prepares it."""
    cpu, clock = time.process_time(), time.perf_counter()
    run()
    return time.process_time() - cpu, time.perf_counter() - clock


def compare(corpus: Path, count: int, rounds: int) -> JsonObject:
    """Every side in turn, `rounds` times; medians."""
    _, samples = samples_of(corpus, count)
    tokens = sum(len(sample) for sample in samples)
    sides: dict[str, Callable[[Backbone], Times]] = {
        "ours, packed": lambda b: ours(b, samples),
        "TRL, one a pass": lambda b: trl(b, samples, together=1),
        "TRL, four padded": lambda b: trl(b, samples, together=4),
    }
    times: dict[str, list[Times]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            backbone, _ = samples_of(corpus, 1)
            times[name].append(side(backbone))
    result: JsonObject = {
        "samples": len(samples),
        "tokens": tokens,
        "longest": max(len(sample) for sample in samples),
        "threads": torch.get_num_threads(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }
    for name, found in times.items():
        cpu, clock = (statistics.median(one[i] for one in found) for i in (0, 1))
        result[name] = {
            "tokens_per_cpu_second": tokens / cpu,
            "tokens_per_second": tokens / clock,
        }
    return result


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(chosen.threads)
    found = compare(chosen.corpus, chosen.samples, chosen.rounds)
    print(json.dumps(found, indent=2))
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
