"""Programs that stand for model servers: small, real, over HTTP."""

from __future__ import annotations

import sys
from pathlib import Path

_ANSWERS = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Model(BaseHTTPRequestHandler):
    def log_message(self, *args): pass
    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer({"data": [{"id": "tiny"}]} if self.path == "/v1/models" else {"ok": True})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if asked["messages"][-1]["content"] == "die":
            os._exit(3)
        said = json.dumps({"files": sorted(os.listdir(sys.argv[1])), "env": sorted(os.environ)})
        self.answer({"id": "1", "object": "chat.completion", "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": said}}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})

HTTPServer(("127.0.0.1", int(sys.argv[2])), Model).serve_forever()
"""
_FAILS = "import sys; print('KeyError: model_type'); sys.exit(1)"
_SLEEPS = """
import subprocess, time
subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 60; done"])
time.sleep(600)
"""
_GROWS = "x = bytearray(1 << 28); x[::4096] = b'1' * len(x[::4096]); import time; time.sleep(600)"


def command(directory: Path, program: str) -> str:
    """A command template that runs the program."""
    path = directory / "server.py"
    path.write_text(program)
    return f"{sys.executable} {path} {{dir}} {{port}}"


def answers(directory: Path) -> str:
    return command(directory, _ANSWERS)


def fails(directory: Path) -> str:
    return command(directory, _FAILS)


def sleeps(directory: Path) -> str:
    return command(directory, _SLEEPS)


def grows(directory: Path) -> str:
    return command(directory, _GROWS)
