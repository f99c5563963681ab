"""A gateway of a few scripted answers, on loopback, for clients that run in threads."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Wire:
    """The running server: what it will answer, and what it was asked."""

    url: str = ""
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    """Used up one a request, the last one for ever. Status 0 closes without a word."""
    seen: list[tuple[str, str, Any, dict[str, str]]] = field(default_factory=list)
    """Method, path, decoded body and headers of each request."""

    def say(self, value: object, status: int = 200) -> None:
        """Add an answer."""
        self.answers.append((status, json.dumps(value).encode()))


@contextmanager
def scripted() -> Iterator[Wire]:
    """Run a server on a free port of loopback while the context lasts."""
    wire = Wire()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            headers = {name.lower(): value for name, value in self.headers.items()}
            wire.seen.append((self.command, self.path, body, headers))
            status, content = wire.answers.pop(0) if len(wire.answers) > 1 else wire.answers[0]
            if not status:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer  # noqa: N815 - names of http.server

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    wire.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
