"""A container's first program: takes the agent and the agent kit from standard input.

    python3 -I -S -B unpack.py FOLDER

Standard input brings four bytes (big endian), that many bytes of JSON, a list of
`[path, size]`, and then the files one after another. They are written below FOLDER,
and `FOLDER/kit/runner.py` takes over with the job `FOLDER/job`. Nothing is read ahead:
what follows on standard input is the runner's.

So nothing of the host has to be mounted but the gateway's socket. Runs with the rights
of the agent, before any line of it; the standard library alone.
"""

import json
import os
import sys


def take(count: int) -> bytes:
    """Exactly `count` bytes; ends the process when the validator died before."""
    parts = []
    while count:
        piece = os.read(0, min(count, 1 << 20))
        if not piece:
            os._exit(1)
        parts.append(piece)
        count -= len(piece)
    return b"".join(parts)


def unpack(root: str) -> None:
    """Write every file that standard input brings."""
    listing = json.loads(take(int.from_bytes(take(4), "big")))
    for name, size in listing:
        path = os.path.join(root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(take(size))


def main() -> None:
    """Unpack, then become the runner."""
    root = sys.argv[1]
    unpack(root)
    sys.argv[1:] = [os.path.join(root, "job")]
    sys.path.insert(0, os.path.join(root, "kit"))
    import runner  # type: ignore[import-not-found]  # unpacked a moment ago

    runner.main()


main()
