"""What the gateway adds to a tool call, against the same call in the same process.

    python -m benchmarks.gateway [--products 20000] [--calls 400] [--catalog PATH] [--json FILE]

An agent is another process, so the client is one: it speaks HTTP/1.1 with the standard
library over the session's Unix socket. In one run, for every kind of call in turn: the
tool in this process, the tool over a kept connection, and the tool over a fresh
connection each time (as `requests.get` does it). Added is the median over the socket less
the median in process: connection, HTTP, JSON, limits, recorder and thread included. The
clock is the client's. Beside it: opening and closing a session, and the time a call waits
while another session keeps the search threads as busy as it may.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import platform
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from sandbox.catalog.builder import build_index
from sandbox.catalog.generate import write_world
from sandbox.catalog.interface import Catalog
from sandbox.catalog.opening import open_catalog
from sandbox.gateway import GatewayLimits, HttpGateway, wire
from sandbox.tools import call_tool
from scoring.types import Json, JsonObject

TARGET_MS = 3.0
NO_LIMITS = GatewayLimits(requests=10**9, requests_per_second=1e9, burst=10**9, answer_bytes=10**12)
Call = tuple[str, str, JsonObject]
"""Method, tool, arguments."""


class UnixConnection(HTTPConnection):
    """The standard library's HTTP client on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("proxy")
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)

    def call(self, call: Call) -> bytes:
        """One call; its answer."""
        method, tool, arguments = call
        if method == "GET":
            self.request("GET", f"/search/{tool}?{urlencode(arguments)}")
        else:
            headers = {"content-type": "application/json"}
            self.request("POST", f"/tools/{tool}", json.dumps(arguments), headers)
        answer = self.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{tool}: {answer.status} {body[:200]!r}")
        return body


def as_agent(path: str, calls: list[Call], keep: bool) -> list[float]:
    """Seconds of each call, as a process of its own sees them."""
    times = []
    connection = UnixConnection(path)
    for call in calls:
        if not keep:
            connection.close()
        begun = time.perf_counter()
        connection.call(call)
        times.append(time.perf_counter() - begun)
    connection.close()
    return times


def in_process(catalog: Catalog, calls: list[Call]) -> list[float]:
    """Seconds of the same calls without any wire."""
    times = []
    for method, tool, arguments in calls:
        begun = time.perf_counter()
        if method == "GET":
            wire.answer(wire.parse_target(f"/search/{tool}?{urlencode(arguments)}"), catalog)
        else:
            call_tool(tool, arguments, catalog)
        times.append(time.perf_counter() - begun)
    return times


def workload(catalog: Catalog, count: int) -> dict[str, list[Call]]:
    """Calls as agents make them, from products spread over the catalogue."""
    ids = list(catalog.ids())
    step = max(1, len(ids) // count)
    products = list(catalog.products(ids[::step][:count]).values())
    queries = [" ".join(p.title.split()[:3]) for p in products]
    shown = [p.product_id for p in products]
    same_shop = [
        json.dumps([{"q": q}, {"q": other}])
        for q, other in zip(queries, queries[1:] + queries[:1], strict=True)
    ]
    return {
        "GET find_product": [("GET", "find_product", {"q": q, "page": 1}) for q in queries],
        "GET view_product_information": [
            ("GET", "view_product_information", {"product_ids": i}) for i in shown
        ],
        "POST find_product": [("POST", "find_product", {"q": q}) for q in queries],
        "POST check_product_match": [
            ("POST", "check_product_match", {"product_id": i, "requirements": '{"size": "m"}'})
            for i in shown
        ],
        "POST find_products_in_same_shop": [
            ("POST", "find_products_in_same_shop", {"product_queries": q}) for q in same_shop
        ],
        "POST calculate_voucher": [
            (
                "POST",
                "calculate_voucher",
                {"product_prices": "10,20.5", "voucher_type": "percentage", "discount_value": 10,
                 "threshold": 20, "budget": 30},
            )
        ]
        * len(products),
    }  # fmt: skip


async def measure(catalog: Catalog, count: int, agent: ProcessPoolExecutor) -> dict[str, Json]:
    """Every kind of call in process, over a kept and over fresh connections."""
    loop = asyncio.get_running_loop()
    gateway = HttpGateway(catalog, limits=NO_LIMITS)
    calls: dict[str, Json] = {}
    worst = 0.0
    try:
        async with gateway.session("benchmark") as session:
            path = str(session.socket)
            for kind, work in workload(catalog, count).items():
                # A first round of all three is not counted.
                await loop.run_in_executor(agent, as_agent, path, work[:20], True)
                direct = _ms(in_process(catalog, work))
                kept = _ms(await loop.run_in_executor(agent, as_agent, path, work, True))
                fresh = _ms(await loop.run_in_executor(agent, as_agent, path, work, False))
                calls[kind] = {
                    "in_process_ms": direct,
                    "kept_ms": kept,
                    "fresh_ms": fresh,
                    "added_kept_ms": round(kept - direct, 3),
                    "added_fresh_ms": round(fresh - direct, 3),
                }
                worst = max(worst, fresh - direct, kept - direct)
        opened = await _sessions(gateway, 200)
        crowded = await _beside_a_glutton(gateway, catalog, count, agent)
    finally:
        await gateway.close()
    return {
        "calls": calls,
        "worst_median_added_ms": round(worst, 3),
        "session_open_close_ms": opened,
        "beside_a_busy_session_ms": crowded,
        "target_ms": TARGET_MS,
        "met": worst <= TARGET_MS,
    }


async def _sessions(gateway: HttpGateway, count: int) -> float:
    times = []
    for number in range(count):
        begun = time.perf_counter()
        async with gateway.session(str(number)):
            pass
        times.append(time.perf_counter() - begun)
    return _ms(times)


async def _beside_a_glutton(
    gateway: HttpGateway, catalog: Catalog, count: int, agent: ProcessPoolExecutor
) -> float:
    """The median of a plain search while another session searches whole shops all the time."""
    loop = asyncio.get_running_loop()
    work = workload(catalog, count)
    async with gateway.session("glutton") as glutton, gateway.session("quiet") as quiet:
        busy = work["POST find_products_in_same_shop"] * 4
        greedy = loop.run_in_executor(agent, as_agent, str(glutton.socket), busy, True)
        plain = work["GET find_product"][: max(20, count // 4)]
        times = await loop.run_in_executor(agent, as_agent, str(quiet.socket), plain, True)
        await greedy
    return _ms(times)


def _ms(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 3)


@contextmanager
def opened(path: Path | None, products: int) -> Iterator[Catalog]:
    """The given catalogue, or a generated one."""
    if path is not None:
        yield open_catalog(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        lines, index = Path(folder) / "world.jsonl", Path(folder) / "index"
        write_world(products, 7, lines)
        build_index([lines], index)
        yield open_catalog(index)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--catalog", type=Path, help="an index or a catalogue file")
    parser.add_argument("--products", type=int, default=20_000, help="of a generated catalogue")
    parser.add_argument("--calls", type=int, default=400, help="of each kind")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(2, mp_context=spawn) as agent,
        opened(options.catalog, options.products) as catalog,
    ):
        figures = asyncio.run(measure(catalog, options.calls, agent))
        figures |= {
            "products": len(catalog),
            "calls_of_each_kind": options.calls,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
        }
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json is not None and str(options.json) != "-":
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
