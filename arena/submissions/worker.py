"""The process that reads files: `python -I -S -B worker.py`, one request after another.

A request is a line of JSON (`bytes`: the length of the source, `policy`: its fields) and
the source; the answer a line of JSON. Limits of memory and of CPU time a file are set in
here; when one strikes, or the parser crashes, the process ends and the caller knows.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any, NoReturn

MEMORY = 3 << 30
"""Bytes of address space."""
CPU_S = 20
"""Seconds of CPU time a file. The limits of the policy keep the slowest files below 10."""
RECURSION = 12_000


def serve() -> NoReturn:
    """Answer until the input ends."""
    from arena.submissions.policy import Policy
    from arena.submissions.reading import Reading, read_source
    from arena.submissions.rules import Rule, violation

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
    sys.setrecursionlimit(RECURSION)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := requests.readline():
        request: dict[str, Any] = json.loads(line)
        source = requests.read(request["bytes"])
        fields = request["policy"]
        fields["python"] = tuple(fields["python"])
        _allow_cpu()
        try:
            reading = read_source(source, Policy(**fields))
        except Exception as error:  # noqa: BLE001 - no file may bring the gate down
            # A fault of the gate's own, or of a limit. What cannot be read is not admitted.
            told = f"the gate failed on it: {type(error).__name__}"
            reading = Reading((violation(Rule.TOO_COMPLEX, 0, 0, told),))
        answer = reading.to_json()
        answers.write(json.dumps(answer).encode("ascii") + b"\n")
        answers.flush()
    sys.exit(0)


def _allow_cpu() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 1 + CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    serve()
