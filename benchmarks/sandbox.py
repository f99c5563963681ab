"""What a sandbox costs a problem, against the bare tool it is made with.

    python -m benchmarks.sandbox [--sandbox bubblewrap|docker] [--runs 50] [--json FILE]

Timed is `Isolation.run` of an agent that returns an empty dialogue: making the sandbox,
the forwarder, the runner, reading the answer, and removing everything again. In turn
with it, in the same run: a bare `bwrap` around `python3 -c pass` with the same
namespaces, or a bare `docker run` of the same image. A first round of both is not
counted. One after the other, never at once. Medians decide.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from sandbox.isolation import Isolation, SandboxSpec, open_isolation
from sandbox.isolation.docker_image import reference
from scoring.types import AgentProblem, Json

NOTHING = b"def agent_main(problem_data):\n    return []\n"
TARGETS = {"bubblewrap": "at most 0.2 s a problem", "docker": "at most 1.5 times docker run"}
BWRAP_TARGET_S = 0.2
DOCKER_TARGET_RATIO = 1.5


def bare_command(kind: str) -> list[str] | None:
    """The tool alone around a Python that does nothing; None where it is missing."""
    if shutil.which({"bubblewrap": "bwrap", "docker": "docker"}[kind]) is None:
        return None
    if kind == "docker":
        run = ["docker", "run", "--rm", "--network", "none", reference()]
        return [*run, "python3", "-I", "-S", "-c", "pass"]
    view = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    return ["bwrap", *view, "--unshare-all", "/usr/bin/python3", "-I", "-S", "-c", "pass"]


async def seconds(work: Callable[[], Awaitable[None]]) -> float:
    """How long `work` takes."""
    begun = time.perf_counter()
    await work()
    return time.perf_counter() - begun


async def measure(kind: str, runs: int) -> dict[str, list[float]]:
    """Times of the sandbox and of the bare tool, in turn."""
    isolation = await open_isolation(kind)
    bare = bare_command(kind)
    times: dict[str, list[float]] = {"sandbox": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "gateway.sock"
        server = await asyncio.start_unix_server(lambda _, writer: writer.close(), socket)
        spec = SandboxSpec("benchmark", NOTHING, AgentProblem("p", "q", "Product"), socket)
        try:
            for round_ in range(runs + 1):
                took = await seconds(lambda: run_sandbox(isolation, spec))
                bare_took = await seconds(lambda: run_bare(bare)) if bare else None
                if round_:
                    times["sandbox"].append(took)
                    times["bare"] += [bare_took] if bare_took is not None else []
        finally:
            server.close()
            await isolation.close()
    return times


async def run_sandbox(isolation: Isolation, spec: SandboxSpec) -> None:
    """One problem."""
    result = await isolation.run(spec)
    if result.error is not None:
        raise SystemExit(f"the agent failed: {result.error.message}")


async def run_bare(command: list[str]) -> None:
    """One bare run."""
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    if await process.wait() != 0:
        raise SystemExit(f"failed: {' '.join(command)}")


def report(kind: str, times: dict[str, list[float]]) -> dict[str, Json]:
    """Medians, their ratio, and whether the target is met."""
    median = statistics.median(times["sandbox"])
    bare = statistics.median(times["bare"]) if times["bare"] else None
    ratio = median / bare if bare else None
    if kind == "bubblewrap":
        met = median <= BWRAP_TARGET_S
    else:
        met = ratio is not None and ratio <= DOCKER_TARGET_RATIO
    return {
        "sandbox": kind,
        "runs": len(times["sandbox"]),
        "median_s": round(median, 4),
        "best_s": round(min(times["sandbox"]), 4),
        "worst_s": round(max(times["sandbox"]), 4),
        "bare_median_s": round(bare, 4) if bare else None,
        "ratio": round(ratio, 2) if ratio else None,
        "target": TARGETS[kind],
        "met": met,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sandbox", choices=tuple(TARGETS), default="bubblewrap")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = report(options.sandbox, asyncio.run(measure(options.sandbox, options.runs)))
    text = json.dumps(result, indent=2)
    print(text)
    if options.json is not None and str(options.json) != "-":
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
