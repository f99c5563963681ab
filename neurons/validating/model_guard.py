"""Runs a model server and takes it along when the validator goes: `python -I model_guard.py ARGV…`.

Standard input is a pipe that only the validator holds. When it closes, however the validator
ended, the whole process group is killed. Imports nothing of this project.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading

NO_SUCH_COMMAND = 127


def main() -> int:
    """Start the command, wait for it, and give its exit code on."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    except OSError as error:
        print(f"{sys.argv[1]}: {error.strerror}", flush=True)
        return NO_SUCH_COMMAND
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    code = process.wait()
    return code if code >= 0 else 128 - code


def _end_with_stdin() -> None:
    while os.read(0, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
