"""What the API takes: signed record uploads a second, their latency, and validators that poll.

    python -m benchmarks.api [--records 1600] [--processes 2] [--json FILE]

Real uvicorn processes on loopback over an embedded Postgres; real signatures on every
request and every record. Records are 30 KB of canonical JSON with a verdict, each for a
problem that it counts for. The client is a bare HTTP/1.1 client in this process, on the
same cores; everything is signed and packed before, but the requests' headers, which grow
old.

Rates are by the clock. Beside them stands the CPU time, user and system, that the API's
processes, Postgres and the client took for one record: on a machine with other work it says
what an idle one would do.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid5

import structlog
from bittensor.keyfiles import Keypair
from bittensor_auth import generate_auth_headers
from pydantic import SecretStr

from arena.api.inputs import InputStore, open_evaluation
from arena.api.settings import ApiSettings
from arena.db.embedded import EmbeddedPostgres
from arena.db.engine import open_database
from arena.runs.frames import encode_frame
from arena.runs.ledger import Head, seal_after
from arena.runs.record import AgentRef
from arena.runs.signing import KeypairSigner
from arena.settings import ArenaSettings
from arena.work.queue import WorkQueue
from arena.work.types import Evaluation, EvaluationKind
from judge.verdict import Gate
from scoring.types import Problem
from tests.unit.arena import builders

NAMESPACE = UUID("3f0d6c1e-90a4-5d0e-9a7c-1d2c3b4a5f60")
SOURCE = b"def agent_main(problem):\n    return []\n"
RECORD_BYTES = 30_000
VALIDATORS = 16
BATCHES = (16, 64)
POLLERS, POLL_S = 200, 30.0
TARGET_RATE, TARGET_P99_MS, TARGET_POLL = 200, 200, 0.10
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Sender:
    """A validator with its sealed records, packed one by one and by the batch."""

    pair: Keypair
    single: list[bytes]

    def batches(self, size: int) -> list[bytes]:
        """The same records, several in a body."""
        return [b"".join(self.single[i : i + size]) for i in range(0, len(self.single), size)]


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_600, help="uploads in each round")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", nargs=2, metavar=("URL", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve(options.serve[0], int(options.serve[1]))
        return
    found = asyncio.run(_measure(options.records, options.processes))
    print(json.dumps(found, indent=2))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


async def _measure(records: int, processes: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="arena-bench-") as directory:
        server = EmbeddedPostgres(Path(directory))
        server.start()
        try:
            return await _with_database(server, records, processes)
        finally:
            server.stop()


async def _with_database(
    server: EmbeddedPostgres, records: int, processes: int
) -> dict[str, object]:
    each = records // VALIDATORS
    url = server.url.replace("postgresql+asyncpg", "postgresql")
    settings = ArenaSettings(database_url=SecretStr(url))
    async with open_database(settings) as database:
        await database.ready()
        rounds = [
            await _prepare(database.engine, number, each) for number in range(2 + len(BATCHES))
        ]
    postmaster = int((server.cluster / "postmaster.pid").read_text().split()[0])
    load_before = os.getloadavg()[0]
    async with _serving(url, processes) as (ports, pids):
        watch = {"api": pids, "postgres": [postmaster], "client": [os.getpid()]}
        first, paced, *others = rounds
        await _send(first, ports, [s.single[:2] for s in first])  # warm
        single = await _timed(watch, _send(first, ports, [s.single[2:] for s in first]))
        sent = sum(len(s.single) - 2 for s in first)
        by_size = {"uploads_of_one": _rates(single, sent)}
        for size, senders in zip(BATCHES, others, strict=True):
            took = await _timed(watch, _send(senders, ports, [s.batches(size) for s in senders]))
            whole = sum(len(s.single) for s in senders)
            by_size[f"batches_of_{size}"] = _rates(took, whole)
        latencies = await _paced(paced, ports, TARGET_RATE / 2)
        polls = 400
        polled = await _timed(watch, _poll(paced, ports, polls))
    poll_s = (polled.cpu("api") + polled.cpu("postgres")) / polls
    return {
        "machine": [platform.machine(), os.cpu_count(), platform.python_version()],
        "load_before_and_after": [round(load_before, 1), round(os.getloadavg()[0], 1)],
        "processes": processes,
        "record_bytes": RECORD_BYTES,
        "records": by_size,
        "at_half_the_target_rate": {
            "uploads": len(latencies),
            "p50_ms": round(statistics.median(latencies) * 1e3, 1),
            "p99_ms": round(statistics.quantiles(latencies, n=100)[98] * 1e3, 1),
        },
        "polling": {
            "cpu_ms_a_poll": round(poll_s * 1e3, 2),
            "share_of_a_core_for_200": round(poll_s * POLLERS / POLL_S, 4),
        },
        "targets": {
            "records_a_second": TARGET_RATE,
            "p99_ms": TARGET_P99_MS,
            "share_of_a_core": TARGET_POLL,
        },
    }


def _rates(took: _Took, records: int) -> dict[str, object]:
    each = {
        who: [round(user / records * 1e3, 2), round(system / records * 1e3, 2)]
        for who, (user, system) in took.cpu_s.items()
    }
    whole = sum(took.cpu(who) for who in took.cpu_s)
    return {
        "records": records,
        "records_a_second": round(records / took.wall_s, 1),
        "cpu_ms_a_record_user_and_system": each,
        "cpu_ms_a_record": round(whole / records * 1e3, 2),
        "records_a_second_on_two_idle_cores": round(2 * records / whole, 1),
    }


async def _prepare(engine: object, number: int, each: int) -> list[Sender]:
    """One evaluation, every validator's run of it, and its records."""
    from sqlalchemy.ext.asyncio import AsyncEngine

    assert isinstance(engine, AsyncEngine)
    queue, now = WorkQueue(engine), datetime.now(UTC)
    problems = [
        replace(
            builders.problem(i, f"find {i}"),
            problem_id=str(uuid5(NAMESPACE, f"{number} {i}")),
        )
        for i in range(each)
    ]
    evaluation = await open_evaluation(
        queue,
        InputStore(engine),
        uuid5(NAMESPACE, f"version {number}"),
        EvaluationKind.QUALIFYING,
        None,
        name="agent",
        source=SOURCE,
        problems=problems,
        suite=1,
        needed=VALIDATORS,
        at=now,
    )
    senders = []
    for who in range(VALIDATORS):
        pair = _key(number * VALIDATORS + who)
        lease = await queue.claim(
            str(pair.ss58_address), capacity=9, now=now, lease=timedelta(hours=1)
        )
        assert lease is not None
        senders.append(_sealed(pair, evaluation, problems))
    return senders


def _key(number: int) -> Keypair:
    return Keypair.create_from_uri(f"//Validator//{number}")


def _sealed(pair: Keypair, evaluation: Evaluation, problems: Sequence[Problem]) -> Sender:
    head, signer, frames = Head(), KeypairSigner(pair), []
    version, digest = str(evaluation.version), hashlib.sha256(SOURCE).hexdigest()
    for problem in problems:
        record = replace(
            builders.record(
                problem,
                race_id=str(evaluation.evaluation_id),
                run_id=hashlib.md5(f"{pair.ss58_address}{problem.problem_id}".encode()).hexdigest(),
                gate=Gate.INFERENCE,
                dialogue=tuple({"text": _filler(i)} for i in range(28)),
            ),
            agent=AgentRef(version, "agent", digest, version),
            phase=evaluation.kind.value,
        ).encode()
        sealed = seal_after(head, record, signer, now=datetime.now(UTC), block=None)
        head = Head.of(sealed.sealed)
        frames.append(encode_frame(sealed.record, sealed.sealed))
    return Sender(pair, frames)


def _filler(seed: int) -> str:
    """A kilobyte that compresses about as text does."""
    words = random.Random(seed)
    return " ".join(f"{words.randrange(10_000):x}" for _ in range(220))[:1_000]


async def _send(senders: Sequence[Sender], ports: Sequence[int], bodies: list[list[bytes]]) -> None:
    """Every validator sends its bodies one after the other, all validators at once."""

    async def one(index: int) -> None:
        connection = await _Connection.open(ports[index % len(ports)])
        for body in bodies[index]:
            await connection.post("/v1/validator/records", body, senders[index].pair)
        connection.close()

    await asyncio.gather(*(one(i) for i in range(len(senders))))


async def _paced(senders: Sequence[Sender], ports: Sequence[int], rate: float) -> list[float]:
    """Uploads that begin at a fixed rate, whatever became of those before; their latencies."""
    connections = [await _Connection.open(ports[i % len(ports)]) for i in range(len(senders))]
    locks = [asyncio.Lock() for _ in senders]
    latencies: list[float] = []
    begun = time.perf_counter()

    async def one(number: int) -> None:
        due = begun + number / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        who, which = number % len(senders), number // len(senders)
        async with locks[who]:
            await connections[who].post(
                "/v1/validator/records", senders[who].single[which], senders[who].pair
            )
        latencies.append(time.perf_counter() - due)

    total = sum(len(sender.single) for sender in senders)
    await asyncio.gather(*(one(number) for number in range(total)))
    for connection in connections:
        connection.close()
    return latencies


async def _poll(senders: Sequence[Sender], ports: Sequence[int], polls: int) -> None:
    """Validators that ask for work and get none."""
    each = polls // len(senders)

    async def one(index: int) -> None:
        connection = await _Connection.open(ports[index % len(ports)])
        for _ in range(each):
            await connection.post("/v1/validator/work/claim", b"", _key(1_000 + index), ok=204)
        connection.close()

    await asyncio.gather(*(one(i) for i in range(len(senders))))


class _Connection:
    """One kept HTTP/1.1 connection, as bare as can be."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> _Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, path: str, body: bytes, pair: Keypair, ok: int = 200) -> None:
        lines = [f"POST {path} HTTP/1.1", "host: arena", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in generate_auth_headers(pair).items()]
        self._writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = 0
        if "content-length: " in head:
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
        answer = await self._reader.readexactly(length)
        status = int(head.split(" ", 2)[1])
        if status != ok:
            raise SystemExit(f"{path}: {status} {answer.decode()[:300]}")

    def close(self) -> None:
        self._writer.close()


@dataclass(frozen=True, slots=True)
class _Took:
    """Wall time, and CPU seconds by who used them: user, system."""

    wall_s: float
    cpu_s: dict[str, tuple[float, float]]

    def cpu(self, who: str) -> float:
        return sum(self.cpu_s[who])


async def _timed(watch: Mapping[str, Sequence[int]], work: Coroutine[Any, Any, None]) -> _Took:
    """What these processes and their children took meanwhile."""
    before, begun = {who: _cpu(pids) for who, pids in watch.items()}, time.perf_counter()
    await work
    wall = time.perf_counter() - begun
    cpu = {}
    for who, pids in watch.items():
        user, system = _cpu(pids)
        cpu[who] = (user - before[who][0], system - before[who][1])
    return _Took(wall, cpu)


def _cpu(pids: Sequence[int]) -> tuple[float, float]:
    user = system = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid, parent = int(stat.parent.name), int(fields[1])
        # The servers are our own children, and no part of the client.
        if pid in pids or (parent in pids and parent != os.getpid()):
            user += int(fields[11])
            system += int(fields[12])
        if pid in pids and pid != os.getpid():  # children that it has waited for
            user += int(fields[13])
            system += int(fields[14])
    return user / _TICK, system / _TICK


@asynccontextmanager
async def _serving(url: str, processes: int) -> AsyncIterator[tuple[list[int], list[int]]]:
    import socket

    ports = []
    for _ in range(processes):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(int(free.getsockname()[1]))
    command = [sys.executable, "-m", "benchmarks.api"]
    command += ["--serve", url]
    running = [subprocess.Popen([*command, str(port)]) for port in ports]  # noqa: ASYNC220
    try:
        for port in ports:
            await _until_up(port)
        yield ports, [process.pid for process in running]
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            process.wait(30)


async def _until_up(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        return
    raise SystemExit("the API does not start")


@dataclass(frozen=True)
class _Peer:
    uid: int
    hotkey: str
    permit: bool = True
    stake: int = 10**12


@dataclass(frozen=True)
class _Subnet:
    peers: tuple[_Peer, ...]
    netuid: int = 15
    block: int = 1
    tempo: int = 360


def _serve(url: str, port: int) -> None:
    """One process of the API, as `arena serve` runs it; its log goes nowhere but is made."""
    import uvicorn

    from arena.api.app import create_app
    from arena.api.links import Links
    from arena.api.metagraph import MetagraphCache
    from arena.api.objects import LocalStore
    from arena.api.services import TRUSTED_S, Services, utc_now
    from arena.db.journal import PostgresJournal
    from arena.records.store import RecordStore

    keys = [
        _key(i)
        for i in [*range((2 + len(BATCHES)) * VALIDATORS), *range(1_000, 1_000 + VALIDATORS)]
    ]
    subnet = _Subnet(tuple(_Peer(i, str(key.ss58_address)) for i, key in enumerate(keys)))
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(Path(os.devnull).open("w")),  # noqa: SIM115
    )

    async def read() -> _Subnet:
        return subnet

    async def run() -> None:
        settings = ApiSettings(
            address_rate=100_000, address_burst=100_000, hotkey_rate=10_000, hotkey_burst=10_000
        )
        address = ArenaSettings(database_url=SecretStr(url))
        async with open_database(address, trusted_s=TRUSTED_S) as database:
            await database.ready()
            links = Links(b"k" * 32)
            services = Services(
                settings=settings,
                engine=database.engine,
                queue=WorkQueue(database.engine),
                records=RecordStore(database.engine),
                journal=PostgresJournal(database.engine),
                objects=LocalStore(Path(tempfile.gettempdir()), links),
                metagraph=MetagraphCache(read, utc_now, refresh_s=60, max_age_s=600),
                links=links,
            )
            app = create_app(services)
            config = uvicorn.Config(app, port=port, log_config=None, access_log=False)
            await uvicorn.Server(config).serve()

    asyncio.run(run())


if __name__ == "__main__":
    main()
