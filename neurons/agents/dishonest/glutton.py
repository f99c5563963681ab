"""Takes memory and processes until something stops it.

What the arena does about it: the sandbox's cgroup stops it, the run fails by the
agent's own fault, and the agents beside it notice nothing.
"""

import os
import time
import zlib
from typing import Any


def eat() -> None:
    """Hold ever more memory."""
    plate = []
    while True:
        plate.append(bytearray(32 << 20))


def breed() -> None:
    """Fork until the kernel refuses, which raises here."""
    while os.fork():
        pass
    time.sleep(600)


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Half of the problems: memory. The other half: processes."""
    if zlib.crc32(problem_data["problem_id"].encode()) % 2:
        eat()
    else:
        breed()
    return []
