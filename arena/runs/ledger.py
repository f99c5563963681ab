"""The chain of seals of one validator on one machine.

Every record that a hotkey seals gets the next number and names the seal before it, whichever
race it belongs to. Two rules keep the chain whole when a process or the machine dies:

- The frame with record and seal is on disk before the head moves. A head that was not
  moved is found again in the spool, since every spool is registered before its first frame.
- One process at a time: taking a number, writing the frame and moving the head happen under
  a lock that the kernel drops with its process. Races of one hotkey at once take turns.

So a number is never given twice and none is left out, and a spool may be deleted once its
race is over. Two machines with one hotkey would fork the chain all the same: a hotkey lives
on one machine, and the database refuses the fork.

A machine that lost its ledger goes on behind the last seal that is stored elsewhere
(`follow`). That is safe because a seal is evidence by itself: it is the hotkey's own
signature, checked here, so nobody else can say where the chain stands; and its next number is
free wherever it is stored, since whoever stores seals refuses a second one. Numbers that were
given after it and never left the lost disk are given again. Nobody has seen the first ones,
and if they do turn up, with the old disk, the database refuses them as a fork.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from arena.exceptions import SealError
from arena.runs.canonical import canonical
from arena.runs.frames import DamagedFrameError, read_frame
from arena.runs.record import EncodedRecord
from arena.runs.seal import BlockRef, Seal, Sealed, SealedRecord, signing_message, timestamp
from arena.runs.signing import Signer, verify_signature
from scoring.types import JsonObject

HEAD_FILE = "head.json"
LOCK_FILE = "lock"
TURN_S = 60.0
"""Longest wait for another process's turn, which takes milliseconds."""
_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain; the next seal builds on it. Number 0 is a chain without a seal."""

    sequence: int = 0
    hash: str | None = None
    sealed_at: str | None = None
    block: BlockRef | None = None

    @classmethod
    def of(cls, sealed: Sealed) -> Head:
        """The head after this seal."""
        seal = sealed.seal
        return cls(seal.sequence, sealed.hash, seal.sealed_at, seal.block)


def seal_after(
    head: Head, record: EncodedRecord, signer: Signer, *, now: datetime, block: BlockRef | None
) -> SealedRecord:
    """Seal a record as the next one of a chain.

    `now` in UTC and `block` the last block known: where either lies before the head's, the
    head's stands, since a chain never goes back in time.
    """
    sealed_at = timestamp(now)
    if head.sealed_at is not None:
        sealed_at = max(sealed_at, head.sealed_at, key=datetime.fromisoformat)
    if head.block is not None and (block is None or block.number < head.block.number):
        block = head.block
    seal = Seal(
        validator=signer.address,
        sequence=head.sequence + 1,
        previous=head.hash,
        kind=record.kind,
        record=record.hash,
        size=len(record.content),
        sealed_at=sealed_at,
        block=block,
    ).encode()
    return SealedRecord(record, Sealed(seal, signer.sign(signing_message(seal))))


@dataclass(frozen=True, slots=True)
class _State:
    """What `head.json` holds: the head, and how far each open spool is accounted for."""

    head: Head = field(default_factory=Head)
    spools: dict[str, int] = field(default_factory=dict)


class Turn:
    """The chain while it is this process's turn, for one record."""

    def __init__(self, ledger: Ledger, state: _State, spool: str) -> None:
        self._ledger = ledger
        self._state = state
        self._spool = spool

    def seal(self, record: EncodedRecord) -> SealedRecord:
        """The record as the chain's next. It counts once `keep` is called."""
        return self._ledger.seal_after(self._state.head, record)

    def keep(self, sealed: Sealed, end: int) -> None:
        """Move the head: the frame is on disk, and the spool ends at byte `end`."""
        spools = {**self._state.spools, self._spool: end}
        self._ledger.write(_State(Head.of(sealed), spools))


class Ledger:
    """A hotkey's chain, kept in `directory`. For all threads of a process."""

    def __init__(
        self,
        directory: Path,
        signer: Signer,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        block: Callable[[], BlockRef | None] = lambda: None,
    ) -> None:
        """`block` tells the last block known, without waiting. Raises SealError."""
        self.directory = directory / signer.address
        self.signer = signer
        self._now = now
        self._block = block
        self._thread = threading.Lock()
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SealError(f"{self.directory}: {error.strerror}") from error

    @property
    def head(self) -> Head:
        """The end of the chain, with what killed processes left in their spools."""
        with self._locked():
            return self._caught_up().head

    def seal_after(self, head: Head, record: EncodedRecord) -> SealedRecord:
        """Seal a record behind `head`, with this ledger's key, clock and block."""
        return seal_after(head, record, self.signer, now=self._now(), block=self._block())

    def enter(self, spool: Path, end: int, last: Sealed | None) -> None:
        """Register a spool that ends at byte `end`, before anything is sealed into it.

        `last` is its last seal of this hotkey. Raises SealError when it cannot belong to
        this chain.
        """
        with self._locked():
            state = self._caught_up()
            head = state.head if last is None else self._later(state.head, last, spool)
            self.write(_State(head, {**state.spools, _name(spool): end}))

    def adopt(self, sealed: Sealed) -> None:
        """Go on after a seal that is stored elsewhere, when this chain has none yet.

        Raises SealError when it has, or when the seal is not this hotkey's.
        """
        with self._locked():
            state = self._caught_up()
            if state.head.sequence or sealed.seal.validator != self.signer.address:
                raise SealError(f"{self.directory} has a chain of its own")
            self.write(replace(state, head=self._later(state.head, sealed, self.directory)))

    def follow(self, sealed: Sealed, where: object) -> Head:
        """Go on after a seal that is stored in `where`, if it lies further on than this chain.

        The head as it was before. Raises SealError when the seal is not this hotkey's, or is
        another one than this chain has with its number.
        """
        with self._locked():
            state = self._caught_up()
            if sealed.seal.validator != self.signer.address:
                raise SealError(f"a seal of {sealed.seal.validator} is none of this chain's")
            head = self._later(state.head, sealed, where)
            if head != state.head:
                self.write(replace(state, head=head))
            return state.head

    def leave(self, spool: Path) -> None:
        """Forget a spool into which nothing is sealed any more."""
        with self._locked():
            state = self._caught_up()
            if _name(spool) in state.spools:
                rest = {path: end for path, end in state.spools.items() if path != _name(spool)}
                self.write(replace(state, spools=rest))

    @contextmanager
    def turn(self, spool: Path) -> Iterator[Turn]:
        """This process's turn: no other one seals with this hotkey meanwhile.

        Raises SealError when another process keeps its turn for `TURN_S` seconds, or when
        the spool was never entered.
        """
        with self._locked():
            state = self._caught_up()
            if _name(spool) not in state.spools:
                raise SealError(f"{spool} is not registered in {self.directory}")
            yield Turn(self, state, _name(spool))

    def write(self, state: _State) -> None:
        """Put the state on disk, whole or not at all. Only while locked."""
        head, target = state.head, self.directory / HEAD_FILE
        value: JsonObject = {
            "validator": self.signer.address,
            "sequence": head.sequence,
            "hash": head.hash,
            "sealed_at": head.sealed_at,
            "block": head.block.to_json() if head.block else None,
            "spools": dict(state.spools),
        }
        new = target.with_name(target.name + ".new")
        try:
            with new.open("wb") as file:
                file.write(canonical(value) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(target)
            sync_directory(self.directory)
        except OSError as error:
            raise SealError(
                f"{target}: {error.strerror}", remedy="make room on the disk and start again"
            ) from error

    def _read(self) -> _State:
        path = self.directory / HEAD_FILE
        try:
            value: dict[str, Any] = json.loads(path.read_bytes())
            block = value["block"]
            head = Head(
                int(value["sequence"]),
                value["hash"],
                value["sealed_at"],
                BlockRef(block["number"], block["hash"]) if block else None,
            )
            return _State(head, {str(path): int(end) for path, end in value["spools"].items()})
        except FileNotFoundError:
            return _State()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise SealError(
                f"{path} cannot be read",
                remedy="restore it from a backup, or seal with another hotkey",
            ) from error

    def _caught_up(self) -> _State:
        """The state, with the frames of processes that died before they moved the head."""
        state = self._read()
        found = state
        for path, known in state.spools.items():
            found = self._tail(found, path, known)
        if found != state:
            self.write(found)
        return found

    def _tail(self, state: _State, path: str, known: int) -> _State:
        head, end = state.head, known
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # deleted; the head has moved past all that was in it
            return replace(state, spools={p: e for p, e in state.spools.items() if p != path})
        except OSError as error:
            raise SealError(f"{path}: {error.strerror}") from error
        try:
            if os.fstat(fd).st_size <= known:
                return state
            # What only the page cache has could be gone tomorrow, with a number that is used.
            os.fsync(fd)
            with suppress(DamagedFrameError):  # a torn end, set aside when the race goes on
                while (frame := read_frame(fd, end)) is not None:
                    end = frame.end
                    if frame.content.seal_line is not None:
                        head = self._later(head, frame.content.sealed.sealed, Path(path))
        finally:
            os.close(fd)
        return _State(head, {**state.spools, path: end})

    def _later(self, head: Head, sealed: Sealed, spool: object) -> Head:
        """The later of the head and a seal that was found in a spool, or elsewhere."""
        seal = sealed.seal
        if seal.validator != self.signer.address or seal.sequence < head.sequence:
            return head
        if seal.sequence == head.sequence:
            if sealed.hash != head.hash:
                raise SealError(
                    f"the chain of {seal.validator} forks at number {seal.sequence}:"
                    f" {sealed.hash} in {spool}, {head.hash} in {self.directory}",
                    remedy="seal with a new hotkey",
                )
            return head
        if not verify_signature(seal.validator, signing_message(sealed.content), sealed.signature):
            raise SealError(f"{spool}: seal {seal.sequence} is not signed by {seal.validator}")
        return Head.of(sealed)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._thread, self._lock_file() as file:
            deadline = time.monotonic() + TURN_S
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise SealError(
                            f"another process has sealed with {self.signer.address} for"
                            f" {TURN_S:.0f} s",
                            remedy=f"end it (`fuser {self.directory / LOCK_FILE}` names it)",
                        ) from None
                    time.sleep(_POLL_S)
            yield

    def _lock_file(self) -> IO[bytes]:
        try:
            return (self.directory / LOCK_FILE).open("ab")
        except OSError as error:
            raise SealError(f"{self.directory / LOCK_FILE}: {error.strerror}") from error


def sync_directory(directory: Path) -> None:
    """Wait until the disk has a directory's names."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _name(spool: Path) -> str:
    return os.fspath(spool.resolve())
