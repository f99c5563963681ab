"""`/metrics` and `/health` of a validator, from a thread of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from neurons.validating.exceptions import StartError
from scoring.types import JsonObject

_REQUEST_S: Final = 10.0
Health = Callable[[], tuple[bool, JsonObject]]
"""Whether all is well, and what is said of it. Called from another thread."""


class Door:
    """The server. `port` 0 takes a free one."""

    def __init__(self, host: str, port: int, registry: CollectorRegistry, health: Health) -> None:
        """Raises StartError when the port cannot be had."""

        class Handler(BaseHTTPRequestHandler):
            timeout = _REQUEST_S
            server_version = "validator"
            sys_version = ""

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    self._answer(200, CONTENT_TYPE_LATEST, generate_latest(registry))
                elif path == "/health":
                    well, said = health()
                    body = json.dumps(said).encode()
                    self._answer(200 if well else 503, "application/json", body)
                else:
                    self._answer(404, "text/plain", b"/metrics or /health\n")

            def _answer(self, status: int, content_type: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-type", content_type)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing: whoever scrapes does it all day."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is nobody's failure."""

        try:
            self._server = Server((host, port), Handler)
        except OSError as error:
            raise StartError(
                f"port {port} of {host} cannot be had for metrics: {error.strerror}",
                remedy="set ARENA_VALIDATOR_METRICS_PORT; -1 serves none",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Door:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
