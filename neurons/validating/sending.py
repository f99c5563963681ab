"""From a spool to the arena: in order, in batches, again until the arena has them.

How far the arena has a spool stands on disk beside it. `stored` is the byte up to which it
has every record; `settled` the byte up to which sending again would change nothing: a record
of a run whose lease was lost is stored and does not count until the evaluation is ours again
and it is sent once more. A crash between an answer and its line on disk costs one batch sent
twice, which the arena takes as nothing new.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import structlog

from arena.client.backoff import Backoff
from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.validator import TakenRecord, ValidatorClient
from arena.exceptions import SpoolError
from arena.runs.canonical import canonical
from arena.runs.frames import read_spool
from arena.runs.ledger import sync_directory
from arena.runs.spool import FILE_NAME, SpoolEntry
from neurons.validating.exceptions import ChainForkedError, RecordsRefusedError

_log = structlog.get_logger(__name__)

STATE_FILE: Final = "sent.json"
MAX_RECORDS: Final = 64
MAX_PACKED: Final = 24 << 20
"""Bytes of a batch; one record may be larger."""
MAX_PLAIN: Final = 96 << 20
_LASTING: Final = frozenset({"VERDICT", "OPEN", "RECORD_CONFLICT"})
"""Why a record never counts, however often it is sent."""
_PASSING: Final = frozenset(
    {
        "BANNED",
        "BODY_TOO_SLOW",
        "INVALID_SIGNATURE",
        "NONCE_REUSED",
        "NOT_REGISTERED",
        "NOT_REGISTERED_AS_VALIDATOR",
        "TIMESTAMP_SKEW",
    }
)
"""Refusals of the caller or the moment, and not of what is sent."""
_FORKED: Final = "SEAL_CHAIN_FORK"


@dataclass(frozen=True, slots=True)
class Sent:
    """How far the arena has a spool, in bytes. `refused` is where records lie that it does
    not take; `claimed` the run under which the last ones were sent."""

    stored: int = 0
    settled: int = 0
    refused: tuple[int, ...] = ()
    claimed: str | None = None


def read_sent(directory: Path) -> Sent:
    """What stands on disk; nothing sent where nothing readable stands there."""
    try:
        value = json.loads((directory / STATE_FILE).read_bytes())
        return Sent(
            int(value["stored"]), int(value["settled"]), tuple(value["refused"]), value["claimed"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return Sent()  # sent once more, which changes nothing


def write_sent(directory: Path, sent: Sent) -> None:
    """Put it on disk, whole or not at all. Raises SpoolError."""
    target = directory / STATE_FILE
    # Named by its writer: what an earlier run left may still be sent when its next one begins.
    # Both write only what the arena has said, so whichever comes last is true.
    new = target.with_name(f"{target.name}.{secrets.token_hex(4)}.new")
    try:
        with new.open("wb") as file:
            file.write(canonical({**asdict(sent), "refused": list(sent.refused)}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        new.replace(target)
        sync_directory(directory)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise SpoolError(f"{target}: {error.strerror}", remedy="make room on the disk") from error


def is_sent(directory: Path) -> bool:
    """Whether the arena has all that a spool holds, but for a half-written end."""
    spool = directory / FILE_NAME
    if not spool.exists():
        return True
    return next(iter(read_spool(spool, read_sent(directory).stored)), None) is None


class Sender:
    """Sends the spool of one evaluation. One at a time a directory.

    `told` hears of every record that the arena has taken.
    """

    def __init__(
        self,
        client: ValidatorClient,
        directory: Path,
        *,
        claimed: str | None = None,
        backoff: Backoff | None = None,
        told: Callable[[TakenRecord], None] = lambda taken: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`claimed` is the run that is held; None sends only what was never stored."""
        self._client = client
        self._directory = directory
        self._spool = directory / FILE_NAME
        self._backoff = backoff
        self._told = told
        self._sleep = sleep
        self._rng = random.Random()  # noqa: S311 - spreads tries, hides nothing
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        sent = read_sent(directory)
        if claimed is not None:
            sent = replace(sent, stored=sent.settled, claimed=claimed)
        self._sent = sent
        self.refusal: RecordsRefusedError | None = None
        """The first record that the arena refused for good, if it did."""

    @property
    def sent(self) -> Sent:
        """How far the arena has the spool."""
        return self._sent

    def add(self, key: str, entry: SpoolEntry) -> None:
        """There is something new in the spool."""
        self._idle.clear()
        self._wake.set()

    async def run(self) -> None:
        """Send what comes, until cancelled. Raises ChainForkedError and SpoolError, which no
        further try would mend. A refusal of the caller (permit, clock) is waited out."""
        failures = 0
        while True:
            try:
                await self.send_all()
            except ArenaApiError as error:
                failures += 1
                _log.warning(
                    "records wait", evaluation=self._name, code=error.code, error=str(error)
                )
                await self._pause(failures)
                continue
            failures = 0
            self._idle.set()
            await self._wake.wait()
            self._wake.clear()

    async def wait_sent(self) -> None:
        """Until everything that was added is with the arena, while `run` runs."""
        self.add("", SpoolEntry(0, 0))
        await self._idle.wait()

    async def send_all(self) -> None:
        """Send all that the spool holds now. Raises as `run`."""
        while batch := await asyncio.to_thread(self._next_batch):
            await self._send(batch)

    def _next_batch(self) -> list[SpoolEntry]:
        if not self._spool.exists():
            return []
        batch: list[SpoolEntry] = []
        packed = plain = 0
        for frame in read_spool(self._spool, self._sent.stored):
            packed += frame.length
            plain += len(frame.content.record.content)
            if batch and (packed > MAX_PACKED or plain > MAX_PLAIN):
                break
            batch.append(SpoolEntry(frame.offset, frame.length))
            if len(batch) == MAX_RECORDS:
                break
        return batch

    async def _send(self, batch: list[SpoolEntry]) -> None:
        start, end = batch[0].offset, _end(batch[-1])
        body = await asyncio.to_thread(self._read, start, end)
        try:
            taken = await self._client.send_records(body, backoff=self._backoff)
        except RefusedError as error:
            await self._refused(batch, error)
            return
        if len(taken) != len(batch):
            raise RecordsRefusedError("the arena took another number of records than were sent")
        await self._note(batch, taken)

    async def _note(self, batch: list[SpoolEntry], taken: list[TakenRecord]) -> None:
        settled = self._sent.settled
        for frame, one in zip(batch, taken, strict=True):
            if settled == frame.offset and (one.counted or one.reason in _LASTING):
                settled = _end(frame)
            if one.reason == "RECORD_CONFLICT":
                _log.warning("another record counts for a problem", directory=self._name)
            self._told(one)
        self._sent = replace(self._sent, stored=_end(batch[-1]), settled=settled)
        await asyncio.to_thread(write_sent, self._directory, self._sent)
        counted = sum(one.counted for one in taken)
        _log.info("records sent", evaluation=self._name, records=len(taken), counted=counted)

    async def _refused(self, batch: list[SpoolEntry], error: RefusedError) -> None:
        """A batch that was not taken: a part of it may be, or it is passed over.

        Raises ChainForkedError, and the refusal itself where it is of the caller.
        """
        if error.error_code == _FORKED:
            raise ChainForkedError(
                f"the arena has another chain of this hotkey's seals: {error.message}",
                remedy="run one validator a hotkey; put the ledger directory back from its"
                " backup, or sign with another hotkey in a data directory of its own",
            ) from error
        if error.error_code in _PASSING:
            raise error
        index = error.body.get("index")
        if isinstance(index, int) and 0 < index < len(batch):
            await self._send(batch[:index])
            return
        if len(batch) > 1:
            part = 1 if index == 0 else len(batch) // 2
            await self._send(batch[:part])
            return
        await self._pass_over(batch[0], error)

    async def _pass_over(self, frame: SpoolEntry, error: RefusedError) -> None:
        """One record that the arena will not have: the ones behind it go on."""
        _log.error(
            "the arena refuses a record",
            evaluation=self._name,
            offset=frame.offset,
            code=error.error_code,
            detail=error.message,
        )
        refused = RecordsRefusedError(
            f"the arena refuses a record ({error.error_code}): {error.message}"
        )
        self.refusal = self.refusal or refused
        sent = self._sent
        settled = _end(frame) if sent.settled == frame.offset else sent.settled
        self._sent = replace(
            sent, stored=_end(frame), settled=settled, refused=(*sent.refused, frame.offset)
        )
        await asyncio.to_thread(write_sent, self._directory, self._sent)

    def _read(self, start: int, end: int) -> bytes:
        try:
            with self._spool.open("rb") as file:
                return os.pread(file.fileno(), end - start, start)
        except OSError as error:
            raise SpoolError(f"{self._spool}: {error.strerror}") from error

    async def _pause(self, failures: int) -> None:
        await self._sleep((self._backoff or Backoff()).delay(failures, self._rng))

    @property
    def _name(self) -> str:
        return self._directory.name


def _end(frame: SpoolEntry) -> int:
    return frame.offset + frame.length
