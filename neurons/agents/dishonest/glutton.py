"""Takes memory and processes until something stops it.

What the arena does about it: the sandbox's cgroup stops it, the run fails by the
agent's own fault, and the agents beside it notice nothing.
"""

import multiprocessing
import zlib
from typing import Any


def eat() -> None:
    """Hold ever more memory."""
    plate = []
    while True:
        plate.append(bytearray(32 << 20))


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Half of the problems: memory. The other half: many processes that all eat."""
    if zlib.crc32(problem_data["problem_id"].encode()) % 2:
        eat()
    workers = [multiprocessing.Process(target=eat) for _ in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return []
