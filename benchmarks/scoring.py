"""How many trajectories one core scores in a second.

    python -m benchmarks.scoring [--problems 300] [--steps 12] [--seconds 3] [--json FILE]

Makes a catalogue of random products, problems of the three buckets from it and, for each,
trajectories of `--steps` steps as agents return them, tool results included: a third
recommends the answer, a third other products that exist, a third products that do not.
Everything is in memory and decoded; timed is what a validator does with it: read the
dialogue, look up the products, apply the rules. The rounds are timed apart, with the
clock of this process's own CPU time; the median counts, and the best round stands beside
it, since neighbours on a busy machine slow a core down. The same run also times the
decoding of the dialogues' JSON, so that the figure can be held against something.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from scoring.attempt import read_attempt
from scoring.outcome import score
from scoring.types import Bucket, Json, PriceBand, Problem, Product, Reward, Voucher

TARGET = 10_000
COLORS = ("black", "white", "red", "blue", "green", "brown")
SIZES = ("s", "m", "l", "xl", "eu:38", "eu:41")


def random_product(number: int, rng: random.Random) -> Product:
    """A product with a few options and attributes, ten to a shop."""
    return Product(
        product_id=str(10_000_000 + number),
        shop_id=str(number // 10),
        title=" ".join(rng.choices(("hat", "bag", "lamp", "cotton", "steel", "mini"), k=9)),
        price=rng.randint(100, 90_000) / 100,
        service=tuple(rng.sample(("official", "freeShipping", "COD", "flashsale"), 2)),
        sku_options={
            str(i): {"color_family": rng.choice(COLORS), "size": rng.choice(SIZES)}
            for i in range(rng.randint(1, 6))
        },
        attributes={f"key {i}": (rng.choice(COLORS),) for i in range(rng.randint(1, 8))},
    )


def reward_for(product: Product) -> Reward:
    """A reward with constraints of every kind."""
    return Reward(
        product_id=product.product_id,
        title=(product.title,),
        price=(PriceBand(product.price - 1, product.price + 1),),
        service=product.service[:1],
        sku_options=(next(iter(product.sku_options.values())),),
        attributes=tuple({k: v} for k, v in list(product.attributes.items())[:3]),
    )


def problem_for(bucket: Bucket, products: list[Product]) -> Problem:
    """A problem that `products` answer."""
    voucher = Voucher("platform", 1.0, "percentage", 1e6, discount=0.1, cap=50.0)
    return Problem(
        problem_id=products[0].product_id + "x",
        query="q",
        bucket=bucket,
        rewards=tuple(map(reward_for, products)),
        voucher=voucher if bucket is Bucket.VOUCHER else None,
    )


def dialogue(ids: str, steps: int, found: list[Json]) -> list[Json]:
    """A trajectory: searches with their results, then the recommendation, then the end."""
    thought = "I compare the price, the service and the options of the candidates. " * 4
    calls: list[tuple[str, dict[str, Json], Json]] = [
        ("find_product", {"q": "hat", "page": 1, "price": "10-500"}, found)
    ] * max(0, steps - 2)
    calls += [("recommend_product", {"product_ids": ids}, "ok")]
    calls += [("terminate", {"status": "success"}, "ok")]
    return [
        {
            "completion": {
                "reasoning_content": "",
                "content": thought,
                "message": {
                    "think": thought,
                    "tool_call": [{"name": name, "parameters": arguments, "result": result}],
                },
            },
            "extra_info": {"step": i + 1, "query": "q", "timestamp": 1_700_000_000_000 + i},
        }
        for i, (name, arguments, result) in enumerate(calls)
    ]


def cpu_seconds(action: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Median and least CPU time of one call, over as many calls as fit into `seconds`."""
    taken: list[float] = []
    end = time.monotonic() + seconds
    while len(taken) < 5 or time.monotonic() < end:
        begun = time.process_time()
        action()
        taken.append(time.process_time() - begun)
    return statistics.median(taken), min(taken)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path, help="write the result here; - is standard output")
    options = parser.parse_args()

    rng = random.Random(1)
    products = [random_product(i, rng) for i in range(5_000)]
    known = {product.product_id: product for product in products}
    found: list[Json] = [
        {"product_id": p.product_id, "title": p.title, "price": p.price} for p in products[:10]
    ]
    tasks: list[tuple[Problem, list[Json]]] = []
    for i in range(options.problems):
        bucket = tuple(Bucket)[i % 3]
        shop = rng.randrange(len(products) // 10) * 10
        answers = products[shop : shop + (1 if bucket is Bucket.PRODUCT else 3)]
        others = rng.sample(products, len(answers))
        problem = problem_for(bucket, answers)
        for recommended in (answers, others, None):
            ids = ",".join(p.product_id for p in recommended) if recommended else "1,2,3"
            tasks.append((problem, dialogue(ids, options.steps, found)))
    texts = [json.dumps(steps) for _, steps in tasks]

    def run() -> int:
        successes = 0
        for problem, steps in tasks:
            attempt = read_attempt(steps)
            chosen = {i: known[i] for i in attempt.ids if i in known}
            successes += score(problem, attempt, chosen).success
        return successes

    assert run() == options.problems
    scoring, best = (t / len(tasks) for t in cpu_seconds(run, options.seconds))
    median, _ = cpu_seconds(lambda: [json.loads(t) for t in texts], options.seconds)
    decoding = median / len(tasks)
    rate = 1 / scoring
    report = {
        "trajectories_per_second": round(rate),
        "best_round_trajectories_per_second": round(1 / best),
        "target": TARGET,
        "microseconds_per_trajectory": round(scoring * 1e6, 1),
        "json_decoding_microseconds": round(decoding * 1e6, 1),
        "scoring_to_decoding": round(scoring / decoding, 3),
        "problems": options.problems,
        "steps": options.steps,
        "trajectories": len(tasks),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "how": "one process, CPU time, median of repeated rounds; without titles",
    }
    text = json.dumps(report, indent=2)
    if options.json is None or str(options.json) != "-":
        print(f"{rate:,.0f} trajectories a second on one core; best round {1 / best:,.0f}")
        print(f"target {TARGET:,}; {scoring * 1e6:.1f} µs each, by the median")
        print(f"decoding the JSON of one takes {decoding * 1e6:.1f} µs")
    if options.json is not None:
        if str(options.json) == "-":
            print(text)
        else:
            options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
