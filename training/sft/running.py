"""A run of supervised fine-tuning: rows, samples, a model for each learning rate, the best one.

`out/run.json` says what the run is; the same command again goes on with it, or finds it done.
The model lies in `out/model` once it is whole.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from corpus_export.tokens import chat_text
from scoring.types import Json, JsonObject
from training.backbone import (
    FACTS,
    MODEL,
    Backbone,
    add_lora,
    load,
    random_qwen3,
    save,
)
from training.corpus import Corpus, Row, hold_out, in_order, matched
from training.exceptions import CorpusRefusedError, RecipeError
from training.files import read_json_file, write_directory
from training.identity import claim
from training.optimising import parallel
from training.optimising.loop import Run, Watcher, choose_device, compute_dtype, optimise
from training.recipe import BaseSettings
from training.render.chat import ChatRenderer
from training.render.checking import Scaffold
from training.render.rows import render_rows, system_block
from training.sft.drills import Drills
from training.sft.measuring import HeldOut
from training.sft.objective import SftObjective
from training.sft.recipe import SftSettings
from training.tokenizing.family import wrap
from training.tokenizing.loading import checked
from training.tokenizing.small import train_small
from training.types import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be learnt, from what, into which directory."""

    rows: Sequence[Row]
    """Admitted by the guard."""
    admit: Callable[[Sample], None]
    settings: SftSettings
    base: BaseSettings | None
    start: str | None
    """A directory or a hub's name; it goes before the recipe's base."""
    seed: int
    out: Path
    facts: JsonObject
    """What else tells this run from others: recipe, hashes of corpora."""
    held: Sequence[Row] | None = None
    """What the loss is measured on; None holds the recipe's share of `rows` out."""
    texts: Sequence[Row] | None = None
    """What a small tokenizer is trained on; None: on what is learnt from."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one learning rate came to."""

    learning_rate: float
    measured: Mapping[str, float]


def corpus_task(
    corpora: Sequence[Corpus],
    settings: SftSettings,
    *,
    base: BaseSettings | None,
    start: str | None,
    seed: int,
    out: Path,
    recipe: JsonObject,
) -> Task:
    """The task of learning from the training rows of corpora. Raises GuardError."""
    rows = [row for corpus in corpora for row in corpus.train()]
    guard = corpora[0].guard
    hashes: list[Json] = [corpus.hash for corpus in corpora]
    return Task(
        rows=rows,
        admit=lambda sample: guard.admit_sample(sample.cluster, sample.row),
        settings=settings,
        base=base,
        start=start,
        seed=seed,
        out=out,
        facts={"recipe": recipe, "corpora": hashes},
    )


def matched_tasks(task: Task, other: Corpus) -> dict[str, Task]:
    """Two tasks of the same size: the rows of `task` against those of another corpus.

    Each learns from as many rows of each bucket as the other, and both are measured on the
    clusters that `task` holds out; the rows of those are left out of the other as well.
    """
    learnt, held = hold_out(task.rows, task.settings.held_out, task.seed)
    clusters = {str(row["cluster"]) for row in held}
    problems = {str(row["problem_id"]) for row in held}
    rest = [
        row
        for row in other.train()
        if str(row["cluster"]) not in clusters and str(row["problem_id"]) not in problems
    ]
    chosen = dict(zip(("corpus", "matched"), matched(learnt, rest, task.seed), strict=True))
    return {
        name: replace(
            task,
            rows=rows,
            held=held,
            # One tokenizer for both: losses under two cannot be compared.
            texts=[*chosen["corpus"], *chosen["matched"]],
            out=task.out / name,
            facts=task.facts | {"matched": [other.hash, name]},
        )
        for name, rows in chosen.items()
    }


def run_sft(task: Task, watcher: Watcher) -> JsonObject:
    """Train, and write the model to `out/model`; the report, which is also in `training.json`.

    Raises OtherRunError, OtherBaseError, CorpusRefusedError, MaskError, DivergedError and what
    the disk says.
    """
    if task.settings.loop.threads:
        torch.set_num_threads(task.settings.loop.threads)
    learnt, held = task.rows, task.held
    if held is None:
        learnt, held = hold_out(task.rows, task.settings.held_out, task.seed)
    if not learnt:
        raise CorpusRefusedError("the corpus has no row to learn from")
    first = open_base(task, learnt)
    identity = claim(task.out, task.facts | {"base": first.base.to_json(), "seed": task.seed})
    if (task.out / MODEL / FACTS).exists():
        return read_json_file(task.out / MODEL / FACTS)
    device = choose_device(task.settings.loop)
    prepared = prepare(task, first.tokenizer, learnt, held, device)
    rates = task.settings.sweep or (task.settings.optimiser.learning_rate,)
    tried: list[Rates] = []
    best: torch.nn.Module | None = None
    for rate in rates:
        backbone = first if rate == rates[0] else open_base(task, learnt, first.tokenizer)
        folder = task.out if len(rates) == 1 else task.out / f"lr-{rate:g}"
        model, measured = _train(task, backbone, prepared, rate, folder, identity, watcher, device)
        tried.append(Rates(rate, measured))
        if best is None or _better(measured, min(tried[:-1], key=_key).measured):
            best = model
    assert best is not None
    report = _report(task, first, prepared, tried)
    if parallel.is_first():
        write_directory(
            task.out / MODEL,
            lambda directory: save(
                best, first.tokenizer, directory, report, form=task.settings.save
            ),
        )
    parallel.wait()
    return read_json_file(task.out / MODEL / FACTS)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Samples, and how to measure."""

    samples: Sequence[Sample]
    measure: HeldOut | None
    scaffold: Scaffold
    counts: JsonObject
    drills: Drills | None


def open_base(
    task: Task, rows: Sequence[Row], tokenizer: PreTrainedTokenizerBase | None = None
) -> Backbone:
    """What training begins with: `start`, or the recipe's base. Raises as `load` does."""
    dtype = torch.bfloat16 if task.settings.lora and torch.cuda.is_available() else torch.float32
    device = choose_device(task.settings.loop)
    if task.start is not None:
        return load(task.start, dtype=dtype, device=device)
    if task.base is None:
        raise RecipeError("the recipe names no base", remedy="give --from DIR")
    if task.base.name is not None:
        return load(task.base.name, dtype=dtype, device=device)
    assert task.base.size is not None
    used = tokenizer or small_tokenizer(task.base, task.texts or rows)
    backbone = random_qwen3(task.base.size, used, task.seed)
    backbone.model.to(device)  # type: ignore[arg-type]
    return backbone


def small_tokenizer(base: BaseSettings, rows: Sequence[Row]) -> PreTrainedTokenizerBase:
    """The tokenizer that the recipe wants trained, on these rows. Raises RecipeError."""
    if base.tokenizer is None:
        raise RecipeError("a model of random weights needs a tokenizer to be trained")
    ordered = in_order(rows)
    texts = (chat_text(cast("list[JsonObject]", row["messages"])) for row in ordered)
    block = system_block(cast("list[JsonObject]", ordered[0]["messages"]))
    phrases = (block,) if base.tokenizer.phrases else ()
    return checked(wrap(train_small(texts, base.tokenizer.vocabulary, phrases)), "trained")


def prepare(
    task: Task,
    tokenizer: PreTrainedTokenizerBase,
    learnt: Sequence[Row],
    held: Sequence[Row],
    device: torch.device,
) -> Prepared:
    """Rows as samples, repeated as the recipe says. Raises MaskError."""
    renderer = ChatRenderer(tokenizer)
    repeat = cast("Mapping[str, int]", task.settings.repeat)
    repeated = [row for row in learnt for _ in range(repeat.get(str(row["bucket"]), 1))]
    rendered = render_rows(repeated, renderer, task.settings.max_tokens)
    measured_on = render_rows(held, renderer, task.settings.max_tokens)
    if not rendered.samples:
        raise CorpusRefusedError(
            f"none of {len(learnt)} rows has at most {task.settings.max_tokens} tokens",
            remedy="a recipe with a larger max_tokens",
        )
    measure = None
    if measured_on.samples:
        capacity = task.settings.batch.tokens_per_forward
        dtype = compute_dtype(task.settings.loop, device)
        measure = HeldOut(measured_on.samples, tokenizer, capacity, dtype)
    counts: JsonObject = {"learnt": rendered.to_json(), "held_out": measured_on.to_json()}
    asked = task.settings.drills
    drills = None if asked is None else Drills(learnt, tokenizer, asked, task.seed)
    return Prepared(rendered.samples, measure, Scaffold.of(tokenizer), counts, drills)


def _train(
    task: Task,
    backbone: Backbone,
    prepared: Prepared,
    rate: float,
    folder: Path,
    identity: str,
    watcher: Watcher,
    device: torch.device,
) -> tuple[torch.nn.Module, Mapping[str, float]]:
    settings = task.settings
    model: torch.nn.Module = backbone.model
    if settings.loop.gradient_checkpointing:
        backbone.model.gradient_checkpointing_enable({"use_reentrant": False})
        backbone.model.enable_input_require_grads()  # type: ignore[no-untyped-call]
    if settings.lora is not None:
        model = add_lora(backbone, settings.lora, task.seed)
    model.to(device)
    objective = SftObjective(
        prepared.samples,
        settings,
        task.seed,
        prepared.scaffold,
        task.admit,
        prepared.measure,
        prepared.drills,
    )
    optimiser = settings.optimiser.model_copy(update={"learning_rate": rate})
    run = Run(folder, f"{identity} {rate:g}", task.seed, optimiser, settings.loop)
    finished = optimise(model, objective, run, watcher)
    return model, finished.measured


def _key(rates: Rates) -> float:
    return rates.measured.get("held_out_loss", rates.measured["loss"])


def _better(measured: Mapping[str, float], than: Mapping[str, float]) -> bool:
    return _key(Rates(0.0, measured)) < _key(Rates(0.0, than))


def _report(task: Task, first: Backbone, prepared: Prepared, tried: Sequence[Rates]) -> JsonObject:
    best = min(tried, key=_key)
    sweep: list[Json] = [
        {"learning_rate": rates.learning_rate, "measured": cast("JsonObject", dict(rates.measured))}
        for rates in tried
    ]
    return {
        **task.facts,
        "stage": "sft",
        "base": first.base.to_json(),
        "seed": task.seed,
        "parameters": first.parameters,
        "learning_rate": best.learning_rate,
        "measured": cast("JsonObject", dict(best.measured)),
        "sweep": sweep,
        "rows": prepared.counts,
        "peak_memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
