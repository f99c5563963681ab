"""Batched generation against one by one, on the same model, prompts and seeds.

A Qwen3 of random weights in the size of the `tiny` recipes; prompts are random tokens. Both
ways go through the same engine, with a batch of `--batch` and of 1, so that what differs is
the batch alone. `--turns` continues each conversation, with and without the cache of the turns
before. Times are of the process's CPU by default: on a machine that does other work the clock
tells more of that work.

    nice -n 10 python -m benchmarks.generation --batch 8 --prompt 512 --tokens 64
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from training.generation.engine import Engine, EngineLimits, Request
from training.types import Sampling

VOCABULARY = 6_144


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of a way, and sampled tokens a second, prompts included and decoding alone."""

    way: str
    requests: int
    seconds: float
    tokens_per_second: float
    decoding_tokens_per_second: float
    computed_prompt_tokens: int


def tiny(hidden: int, layers: int) -> Qwen3ForCausalLM:
    """In the shape of the tiny recipes."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(1, hidden // 128),
        head_dim=64,
        max_position_embeddings=32_768,
        tie_word_embeddings=True,
    )
    model: Qwen3ForCausalLM = Qwen3ForCausalLM(config).eval()  # type: ignore[no-untyped-call]
    return model


def run(
    engine: Engine, prompts: Sequence[Sequence[int]], tokens: int, clock: Callable[[], float]
) -> tuple[float, float, list[Request]]:
    """All prompts at once; seconds in all, and after the first step of each batch."""
    begun = clock()
    requests = [
        engine.submit(prompt, Sampling(0.9, 0.95, tokens, seed=i), ())
        for i, prompt in enumerate(prompts)
    ]
    engine.step()
    decoding = clock()
    while engine.busy:
        engine.step()
    ended = clock()
    return ended - begun, ended - decoding, requests


def measure(
    way: str, model: Qwen3ForCausalLM, prompts: Sequence[Sequence[int]], batch: int, tokens: int,
    clock: Callable[[], float],
) -> Measured:  # fmt: skip
    """One way, `batch` at a time; decoding alone leaves out the step that takes prompts in."""
    engine = Engine(model, EngineLimits(batch=batch))
    seconds = decoding = 0.0
    for at in range(0, len(prompts), batch):
        whole, later, _ = run(engine, prompts[at : at + batch], tokens, clock)
        seconds, decoding = seconds + whole, decoding + later
    counts = engine.counts
    return Measured(
        way,
        len(prompts),
        round(seconds, 2),
        round(counts.sampled_tokens / seconds, 1),
        round((counts.sampled_tokens - 2 * len(prompts)) / decoding, 1),
        counts.prompt_tokens - counts.cached_tokens,
    )


def measure_turns(
    way: str, model: Qwen3ForCausalLM, prompts: Sequence[Sequence[int]], turns: int, tokens: int,
    clock: Callable[[], float], *, forget: bool,
) -> Measured:  # fmt: skip
    """Conversations of several turns, each with an observation of 300 tokens."""
    engine = Engine(model, EngineLimits(batch=len(prompts)))
    held = [list(prompt) for prompt in prompts]
    rng = random.Random(1)
    seconds = decoding = 0.0
    for _ in range(turns):
        whole, later, requests = run(engine, held, tokens, clock)
        seconds, decoding = seconds + whole, decoding + later
        held = [
            [*prompt, *request.ids, *(rng.randrange(VOCABULARY) for _ in range(300))]
            for prompt, request in zip(held, requests, strict=True)
        ]
        if forget:
            engine.forget()
    counts = engine.counts
    return Measured(
        way,
        len(prompts) * turns,
        round(seconds, 2),
        round(counts.sampled_tokens / seconds, 1),
        round((counts.sampled_tokens - 2 * len(prompts) * turns) / decoding, 1),
        counts.prompt_tokens - counts.cached_tokens,
    )


def main() -> None:
    """Measure, and print one line of JSON a way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--requests", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--wall", action="store_true", help="the clock instead of CPU time")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    clock = time.perf_counter if given.wall else time.process_time
    model = tiny(given.hidden, given.layers)
    rng = random.Random(0)
    prompts = [
        [rng.randrange(VOCABULARY) for _ in range(given.prompt)] for _ in range(given.requests)
    ]
    measure("warm-up", model, prompts[:2], 2, 8, clock)
    ways = [
        measure("one by one", model, prompts, 1, given.tokens, clock),
        measure(f"batches of {given.batch}", model, prompts, given.batch, given.tokens, clock),
    ]
    samples = [prompts[0]] * given.batch
    ways += [
        measure("samples of one prompt", model, samples, given.batch, given.tokens, clock),
        measure_turns("turns, cache dropped", model, prompts[: given.batch], given.turns,
                      given.tokens // 2, clock, forget=True),
        measure_turns("turns, cache kept", model, prompts[: given.batch], given.turns,
                      given.tokens // 2, clock, forget=False),
    ]  # fmt: skip
    for way in ways:
        print(json.dumps(asdict(way)))
    print(json.dumps({
        "ratio": round(ways[1].tokens_per_second / ways[0].tokens_per_second, 2),
        "decoding_ratio": round(
            ways[1].decoding_tokens_per_second / ways[0].decoding_tokens_per_second, 2
        ),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
