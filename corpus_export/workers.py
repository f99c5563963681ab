"""The processes that do the work: records examined and rows finished, in order.

Results come back in the order in which the work was given, and only a few pages are under
way at once, so that neither the number of processes nor their speed shows in an export.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar, cast

import orjson
import pyarrow as pa

from corpus_export.exceptions import CorpusError, Fault
from corpus_export.features import features
from corpus_export.gates import too_long
from corpus_export.row_checks import trajectory_of
from corpus_export.rows import SCHEMA
from corpus_export.scrub import Scrubber
from corpus_export.sources import Page
from corpus_export.types import Reason, Reject
from corpus_export.work import Examiner, Packed, Setup
from corpus_export.workfile import Found
from scoring.types import Json, JsonObject

_In = TypeVar("_In")
_Out = TypeVar("_Out")
_AHEAD = 2
"""Pages given to each process before the first one's result is taken."""
_ROWS = 16
"""Rows finished in one go."""


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of a page's records. `other_day` counts the runs of other days."""

    found: tuple[tuple[Found, bytes | None], ...]
    other_day: int
    cursor: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A candidate's row as JSON, and what was taken out of it; or why it is refused."""

    number: int
    row: bytes
    removed: Counter[str] = field(default_factory=Counter)
    reject: Reject | None = None


class Worker:
    """What one process holds."""

    def __init__(self, setup: Setup) -> None:
        self._examiner = Examiner(setup)
        self._scrubber = Scrubber()
        self._max_tokens = setup.max_tokens

    def examine(self, page: Page) -> Examined:
        """Pass one over a page."""
        results = [self._examiner.examine(raw) for raw in page.records]
        found = tuple(self._clean(result) for result in results if result is not None)
        return Examined(found, len(results) - len(found), page.cursor)

    def finish(self, rows: tuple[tuple[int, bytes], ...]) -> list[Finished]:
        """Pass two over some rows: secrets and personal data are taken out."""
        return [self._finish(number, packed) for number, packed in rows]

    def _finish(self, number: int, packed: bytes) -> Finished:
        unpacked = Packed.unpack(packed)
        row = unpacked.row
        row["agent"] = self._name(cast("str", row["agent"]))
        messages, removed = self._scrubber.scrub(
            cast("list[JsonObject]", row["messages"]), foreign=frozenset(unpacked.foreign)
        )
        if removed:
            row["messages"] = cast("list[Json]", messages)
            found = features(trajectory_of(messages), self._examiner.tokens)
            row["features"] = cast("JsonObject", asdict(found) | {"shape": list(found.shape)})
            # What stands in a secret's place may be longer.
            if (reject := too_long(found.tokens, self._max_tokens)) is not None:
                return Finished(number, b"", removed, reject)
        try:
            pa.RecordBatch.from_pylist([row], SCHEMA)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            # A validator's record may hold anything where a text or a number belongs.
            reject = Reject(Reason.UNREADABLE, f"no row: {error!s:.200}")
            return Finished(number, b"", removed, reject)
        return Finished(number, orjson.dumps(row), removed)

    def _clean(self, result: tuple[Found, bytes | None]) -> tuple[Found, bytes | None]:
        """A detail may quote an agent, and agents' names are for their miners to choose."""
        found, packed = result
        agent = self._name(found.agent) if found.agent else found.agent
        detail, _ = self._scrubbed(found.detail)
        if (agent, detail) == (found.agent, found.detail):
            return result
        return replace(found, agent=agent, detail=detail), packed

    def _name(self, name: str) -> str:
        """A name without what is secret or personal. Hashes, ids and hotkeys may be names."""
        clean, removed = self._scrubbed(name)
        return name if removed.keys() <= {"token", "address"} else clean

    def _scrubbed(self, text: str) -> tuple[str, Counter[str]]:
        if not text:
            return text, Counter()
        message: JsonObject = {"role": "assistant", "content": text}
        cleaned, removed = self._scrubber.scrub([message])
        return str(cleaned[0]["content"]), removed


class Workers:
    """Processes, or this one when one is asked for."""

    def __init__(self, setup: Setup, pool: ProcessPoolExecutor | None, count: int) -> None:
        self._pool = pool
        self._ahead = _AHEAD * count
        self._own = Worker(setup) if pool is None else None

    def examine(self, pages: Iterable[Page]) -> Iterator[Examined]:
        """As `Worker.examine`, in the order of the pages."""
        return self._map(_examine, Worker.examine, pages)

    def finish(self, rows: Iterable[tuple[int, bytes]]) -> Iterator[Finished]:
        """As `Worker.finish`, in the order of the rows."""
        for group in self._map(_finish, Worker.finish, _grouped(rows)):
            yield from group

    def _map(
        self,
        there: Callable[[_In], _Out],
        here: Callable[[Worker, _In], _Out],
        given: Iterable[_In],
    ) -> Iterator[_Out]:
        if self._own is not None:
            for one in given:
                yield here(self._own, one)
            return
        assert self._pool is not None
        waiting: deque[Future[_Out]] = deque()
        try:
            for one in given:
                waiting.append(self._pool.submit(there, one))
                if len(waiting) > self._ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise CorpusError(
                "a process of this export was killed, perhaps for its memory",
                code="corpus.worker_died",
                fault=Fault.VALIDATOR,
                remedy="start the same command again: it goes on; --workers 1 takes least memory",
            ) from error
        finally:
            for future in waiting:
                future.cancel()


@contextmanager
def open_workers(setup: Setup, count: int) -> Iterator[Workers]:
    """Start the processes, and end them."""
    if count == 1:
        yield Workers(setup, None, 1)
        return
    # Spawned: a fork would copy this process's threads' locks and open files.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, context, _start, (setup, os.getpid())) as pool:
        try:
            yield Workers(setup, pool, count)
        finally:
            pool.shutdown(cancel_futures=True)


_worker: Worker | None = None


def _start(setup: Setup, parent: int) -> None:
    """In a new process: Ctrl-C is for the parent to handle, and it does not outlive it."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _worker = Worker(setup)


def _end_with(parent: int) -> None:
    """A parent that was killed tells nobody."""
    pause = threading.Event()
    while os.getppid() == parent:
        pause.wait(1)
    os._exit(1)


def _examine(page: Page) -> Examined:
    assert _worker is not None
    return _worker.examine(page)


def _finish(rows: tuple[tuple[int, bytes], ...]) -> list[Finished]:
    assert _worker is not None
    return _worker.finish(rows)


def _grouped(rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[tuple[int, bytes], ...]]:
    group: list[tuple[int, bytes]] = []
    for row in rows:
        group.append(row)
        if len(group) == _ROWS:
            yield tuple(group)
            group = []
    if group:
        yield tuple(group)
