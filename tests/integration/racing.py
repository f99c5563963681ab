"""A tiny world to race in: a catalogue, a suite, agents and a model server on loopback.

The model server speaks the OpenAI wire and answers with the ids that stand in the
query; it can be told to fail, or to hold an answer back until the test lets it go, so
that a test knows what is running when it interrupts a race.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from arena.runs.record import EncodedRecord, Kind, RunSummary
from arena.runs.spool import SpoolSink

STEPS = """
import json, os, time

def step(name, **parameters):
    call = {"name": name, "parameters": parameters, "tool_call_id": "x", "result": ""}
    message = {"think": "as asked", "tool_call": [call], "response": ""}
    return {"completion": {"reasoning_content": "", "content": "", "message": message},
            "extra_info": {"step": 1, "query": "", "timestamp": 1}}

def end(ids):
    return [step("recommend_product", product_ids=ids), step("terminate", status="success")]
"""

AGENTS = {
    # Knows the answers: the world's queries name them.
    "knower": STEPS + "def agent_main(p):\n    return end(p['query'].split()[-1])\n",
    "wrong": STEPS + "def agent_main(p):\n    return end('6')\n",
    "crasher": STEPS + "def agent_main(p):\n    raise RuntimeError('no\\0 \\x1b[31m idea')\n",
    "asker": STEPS
    + """
from src.agent.proxy_client import ProxyClient

def agent_main(p):
    body = {"model": os.environ["SANDBOX_MODEL"],
            "messages": [{"role": "user", "content": p["query"]}]}
    client = ProxyClient(timeout=100, max_retries=1, retry_delay=0, rate_limit_retry_delay=0)
    answer = client.post("/inference/chat/completions", body)
    return end(answer["choices"][0]["message"]["content"] if answer else "0")
""",
}


def write_world(directory: Path, products: int = 2) -> list[str]:
    """Catalogue, suite and agents; the options that name them.

    `products` problems of the product bucket, then one of shop and one of voucher.
    """
    with (directory / "catalog.jsonl").open("w") as file:
        for number in range(1, 7):
            product = {
                "product_id": str(number),
                "shop_id": "7",
                "title": f"mug {number}",
                "price": 10.0 * number,
                "service": [],
                "sold_count": 0,
                "short_description": "",
                "description": "",
                "sku_options": {},
                "attributes": {},
            }
            line = {"id": str(number), "contents": f"mug {number}", "product": product}
            file.write(json.dumps(line) + "\n")
    problems: list[dict[str, Any]] = [
        {"query": f"problem {n}: find 1", "reward": _reward(1)} for n in range(products)
    ]
    problems.append({"query": "find 2,3", "reward": [_reward(2), _reward(3)]})
    voucher = {
        "voucher_type": "platform",
        "threshold": 50,
        "discount_type": "fixed",
        "face_value": 10,
        "discount": None,
        "cap": None,
        "price_after_voucher": 80,
        "budget": 85,
    }
    problems.append({"query": "find 4,5", "reward": [_reward(4), _reward(5)], "voucher": voucher})
    with (directory / "suite.jsonl").open("w") as file:
        file.writelines(json.dumps(problem) + "\n" for problem in problems)
    for name, source in AGENTS.items():
        (directory / f"{name}.py").write_text(source)
    return [
        "--suite",
        str(directory / "suite.jsonl"),
        "--catalog",
        str(directory / "catalog.jsonl"),
    ]


def _reward(number: int) -> dict[str, Any]:
    price = [{"between": [10 * number - 1, 10 * number + 1]}]
    return {"product_id": str(number), "title": [f"mug {number}"], "price": price}


VERDICT = json.dumps({"reason": "It names nothing.", "gate": "reference", "evidence": []})


class ModelServer:
    """A model provider. `status` other than 200 is what every completion gets.

    It also judges what begins as a rendered trace does: `judge_status` is what those get,
    and while `judging` is not set they are held. `tokens` is what answers to agents cost, `keys`
    the credentials that came with the calls.
    """

    def __init__(self) -> None:
        self.status = 200
        self.judge_status = 200
        self.tokens = 1
        self.traces: queue.Queue[str] = queue.Queue()
        self.judging = threading.Event()
        self.judging.set()
        self.queries: list[str] = []
        self.keys: list[str | None] = []
        self.arrived: queue.Queue[str] = queue.Queue()
        self.held: Callable[[str], bool] = lambda query: False
        self.let_go = threading.Event()
        self.url = ""

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Answer a chat request."""
        query = str(body["messages"][-1]["content"])
        if "TRACE mark=" in query:
            self.traces.put(query)
            self.judging.wait(300)
            if self.judge_status != 200:
                return self.judge_status, {"error": {"message": "out of order"}}
            return 200, _completion(VERDICT, 40)
        self.queries.append(query)
        self.arrived.put(query)
        if self.held(query):
            self.let_go.wait(300)
        if self.status != 200:
            return self.status, {"error": {"message": "out of order"}}
        return 200, _completion(query.split()[-1], self.tokens)


def _completion(text: str, tokens: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "oracle",
            "choices": [choice], "usage": usage}  # fmt: skip


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Run one on a free port of loopback."""
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": "oracle", "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model.keys.append(self.headers.get("authorization"))
            self._send(*model.answer(body))

        def _send(self, status: int, value: dict[str, Any]) -> None:
            data = json.dumps(value).encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except ConnectionError:
                pass  # the race was killed

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        model.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield model
        finally:
            model.let_go.set()
            model.judging.set()
            server.shutdown()
            thread.join()


_AT_A_TERMINAL = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from neurons.cli import main
main()
"""
"""What a shell without job control starts in the background ignores interrupts, and so would a
race that the tests start there."""


class RaceProcess:
    """`arena` in a process of its own, with what it says to people."""

    def __init__(self, arguments: list[str], directory: Path, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AT_A_TERMINAL, *arguments],
            cwd=directory,
            env={k: v for k, v in os.environ.items() if not k.startswith("ARENA_DATA")} | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said = ""
        self._watchdog = threading.Timer(240, self._process.kill)
        self._watchdog.start()

    def until(self, words: str) -> None:
        """Read what it says until a line holds `words`. Fails when it ends before."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line
            if words in line:
                return
        raise AssertionError(f"it ended without saying {words!r}:\n{self.said}")

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for its end; its exit code and standard output."""
        out, said = self._process.communicate()
        self._watchdog.cancel()
        self.said += said
        return self._process.returncode, out


def spooled(out: Path) -> list[EncodedRecord]:
    """All records that a race directory holds, in order."""
    spool = SpoolSink(out)
    try:
        return [found.record for _, found in spool.load()]
    finally:
        spool.close()


def results(out: Path) -> list[RunSummary]:
    """All attempts that a race directory holds, in order."""
    return [RunSummary.of(r.value) for r in spooled(out) if r.kind is Kind.RUN]
