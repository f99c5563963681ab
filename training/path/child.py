"""`arena` as a child process, which dies with its parent however that ends.

python -m training.path.child train sft --recipe tiny_sft …
"""

from __future__ import annotations

import os
import runpy
import signal
import threading


def _end_with_stdin() -> None:
    # The write end lies in the parent alone: the kernel closes it however that one ends.
    # Not through `sys.stdin`: its lock, still held, would abort the interpreter's end.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    runpy.run_module("neurons", run_name="__main__", alter_sys=False)
