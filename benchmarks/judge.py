"""What judging costs besides the model calls: time for a trace, memory for a huge one.

    python -m benchmarks.judge [--traces 10000] [--seconds 3] [--json FILE]

The traces are those of the shipped labelled set, in memory. Timed is all that a validator
does with one around the call of a model: facts, rendering, the prompt, reading an answer
and checking its citations; the answers are the stand-in judge's, made before. One process
is timed in rounds with the clock of its own CPU time; then two processes share `--traces`,
timed by their CPU time and by the wall clock, which a busy machine slows. The same run
times the decoding of the traces' JSON, so that the figure can be held against something.
Memory is the growth of the peak of a fresh process that judges one trace of 10 MB, for
several shapes of it.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scoring import cpu_seconds
from judge.answers import read_answer
from judge.bench_set import SHIPPED, read_labelled
from judge.citations import CitationChecker
from judge.facts import read_facts
from judge.prompts import messages
from judge.rendering import render
from judge.standin import judge
from sandbox.standin.conversation import read_conversation
from sandbox.trace import Event, LlmEvent, ToolEvent, Trace, Usage
from scoring.types import Json, JsonObject

TARGET = 10_000
"""Traces a minute on two cores."""
HUGE = 10 << 20
SHAPES = ("one thought", "many thoughts", "one result", "many results", "long prompts")


@dataclass(frozen=True, slots=True)
class Case:
    """A trace with the answer that a model gave on it."""

    trace: Trace
    query: str
    dialogue: tuple[JsonObject, ...]
    answer: str


def shipped_cases() -> list[Case]:
    """The labelled set, each with the stand-in's answer."""
    cases = []
    for item in read_labelled(SHIPPED):
        answer = _answer(item.trace, item.query, item.dialogue)
        cases.append(Case(item.trace, item.query, item.dialogue, answer))
    return cases


def _answer(trace: Trace, query: str, dialogue: tuple[JsonObject, ...]) -> str:
    shown = render(trace, read_facts(trace, query, dialogue), query)
    return judge(read_conversation(list(messages(shown)), [])).text


def handle(case: Case) -> float:
    """Everything but the model: the quality that comes out."""
    facts = read_facts(case.trace, case.query, case.dialogue)
    messages(render(case.trace, facts, case.query))
    answer = read_answer(case.answer)
    checked = CitationChecker(case.trace).check(answer.citations, answer.gate)
    assert checked.holds, checked.faults
    return min(answer.gate.quality, facts.ceiling)


def share(count: int) -> float:
    """Handle so many traces, one after the other, in this process; its CPU time for them."""
    cases = shipped_cases()
    begun = time.process_time()
    for i in range(count):
        handle(cases[i % len(cases)])
    return time.process_time() - begun


def two_processes(traces: int) -> tuple[float, float]:
    """Seconds for two processes to handle `traces` together: by the wall clock, and CPU time of
    the slower one, which is what two idle cores would take."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(share, [100, 100]))  # started and warm
        begun = time.perf_counter()
        cpu = list(pool.map(share, [traces // 2, traces - traces // 2]))
        return time.perf_counter() - begun, max(cpu)


# A huge trace ---------------------------------------------------------------------------


def huge(shape: str) -> Trace:
    """A trace of 10 MB, most of it in one place."""
    thought = "The results show 48210357 at 389 pesos, cheaper than 48210944 at 742.5. "
    product: Json = {
        "product_id": "48210357",
        "shop_id": "5501",
        "title": "Nordvik Canvas Rucksack Olive",
        "price": 389.0,
    }
    size = len(json.dumps(product))
    query: JsonObject = {"role": "user", "content": "a canvas backpack"}
    if shape == "one thought":
        return _trace([query], [thought * (HUGE // len(thought))], [[product]])
    if shape == "many thoughts":
        return _trace([query], [thought * 14] * (HUGE // len(thought * 14)), [[product]])
    if shape == "one result":
        return _trace([query], [thought], [[product] * (HUGE // size)])
    if shape == "many results":
        return _trace([query], [thought], [[product] * 10] * (HUGE // size // 10))
    told: list[JsonObject] = [
        {"role": "user", "content": f"{i} {thought * 140}"}
        for i in range(HUGE // len(thought * 140))
    ]
    return _trace([query, *told], [thought] * 20, [[product]])


def _trace(table: list[JsonObject], thoughts: list[str], results: list[list[Json]]) -> Trace:
    tool: JsonObject = {"role": "tool", "tool_call_id": "1", "content": "48210357 48210944"}
    prompt = tuple(range(len(table) + 1))
    events: list[Event] = [
        ToolEvent(i, 0.0, 0.0, "tools", "find_product", {"q": "bag"}, 200, list(result))
        for i, result in enumerate(results)
    ]
    for thought in thoughts:
        message: JsonObject = {"role": "assistant", "content": thought}
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": "stop"}
        seq = len(events)
        usage = Usage(0, 1000)
        params: JsonObject = {}
        events.append(
            LlmEvent(
                seq, 0.0, 0.0, 0.0, "m", "s", False, prompt, params, 200, (choice,), usage=usage
            )
        )
    return Trace((*table, tool), tuple(events))


def weigh(shape: str) -> None:
    """In a fresh process: judge one huge trace, and print what that took."""
    trace = huge(shape)
    handle(Case(_trace([], ["warm"], []), "", (), '{"gate": "inference", "evidence": []}'))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    answer = _answer(trace, "a canvas backpack", ())
    handle(Case(trace, "a canvas backpack", (), answer))
    spent = time.process_time() - begun
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gate = str(read_answer(answer).gate)
    print(json.dumps({"added_mb": (after - before) / 1024, "cpu_s": spent, "gate": gate}))


def weigh_apart(shape: str) -> dict[str, float | str]:
    """`weigh` in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.judge", "--weigh", shape]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


# The report -----------------------------------------------------------------------------


def measure(traces: int, seconds: float) -> dict[str, object]:
    """All figures."""
    cases = shipped_cases()
    texts = [json.dumps(case.trace.to_json()) for case in cases]

    def per_trace(action: Callable[[], object]) -> float:
        return cpu_seconds(action, seconds)[0] / len(cases)

    each = per_trace(lambda: [handle(case) for case in cases])
    facts = per_trace(lambda: [read_facts(c.trace, c.query, c.dialogue) for c in cases])
    decoding = per_trace(lambda: [Trace.from_json(json.loads(text)) for text in texts])
    wall, cpu = two_processes(traces)
    return {
        "traces_a_minute_two_cores_cpu": round(traces / cpu * 60),
        "traces_a_minute_two_processes_wall": round(traces / wall * 60),
        "traces_a_minute_one_core_cpu": round(60 / each),
        "target": TARGET,
        "milliseconds_per_trace": round(each * 1e3, 3),
        "of_these_facts": round(facts * 1e3, 3),
        "decoding_milliseconds": round(decoding * 1e3, 3),
        "judging_to_decoding": round(each / decoding, 2),
        "traces": traces,
        "bytes_per_trace": round(sum(map(len, texts)) / len(texts)),
        "huge": {shape: weigh_apart(shape) for shape in SHAPES},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--traces", type=int, default=TARGET)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path, help="write the result here; - is standard output")
    parser.add_argument("--weigh", choices=SHAPES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.weigh:
        weigh(options.weigh)
        return
    report = measure(options.traces, options.seconds)
    text = json.dumps(report, indent=2)
    if options.json is None or str(options.json) == "-":
        print(text)
    else:
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
