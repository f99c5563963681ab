"""Run the stand-in server: `python -m sandbox.standin --port 0`. Prints its URL."""

from __future__ import annotations

import importlib
import os
import socket
import sys
import threading
from typing import Annotated

import typer
import uvicorn

from sandbox.standin.server import create_app


def main(
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    load: Annotated[
        list[str] | None,
        typer.Option(help="Module that registers further models when it is imported."),
    ] = None,
    die_with_stdin: Annotated[
        bool, typer.Option(help="End when standard input closes, as it does when a parent dies.")
    ] = False,
) -> None:
    """Host the rule-based models on OpenAI's chat wire and print the base URL.

    Example: python -m sandbox.standin --port 8099
    """
    for module in load or ():
        importlib.import_module(module)
    if die_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    listener = socket.create_server((host, port))
    config = uvicorn.Config(create_app(), log_level="warning", access_log=False)
    _AnnouncingServer(config).run(sockets=[listener])


def _end_with_stdin() -> None:
    # The write end lies in the parent alone: the kernel closes it however that one ends.
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


class _AnnouncingServer(uvicorn.Server):
    """Prints the base URL once it answers."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say where."""
        await super().startup(sockets)
        if self.started and sockets:
            host, port = sockets[0].getsockname()[:2]
            print(f"http://{host}:{port}/v1", flush=True)


if __name__ == "__main__":
    typer.run(main)
