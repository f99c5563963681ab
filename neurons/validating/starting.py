"""What has to be right before a validator starts, each told in one line."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog

from arena.client.backoff import ONCE
from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.session import ArenaSession
from neurons.doctor import check_disk, check_isolation, check_memory
from neurons.validating.chain_watch import ChainWatch
from neurons.validating.exceptions import NotAllowedError, StartError
from neurons.validating.gates import not_allowed

_log = structlog.get_logger(__name__)

SKEW_S: Final = 60.0
"""How far the arena lets a signature's time lie from its own."""
_NOTABLE_SKEW_S: Final = 10.0
HOTKEY_FILE: Final = "hotkey"
"""Whose a data directory is."""


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Keep a second validator out of this data directory. Raises StartError."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / ".lock").open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StartError(
                    f"another validator works in {root}", remedy="end it, or set ARENA_DATA_DIR"
                ) from None
            yield
    except OSError as error:
        raise StartError(f"{root}: {error.strerror}") from error


def check_hotkey(root: Path, hotkey: str) -> None:
    """That what lies in this data directory is this hotkey's. Raises StartError.

    Records of another one would be taken for done, and the arena refuses them from this one.
    """
    file = root / HOTKEY_FILE
    try:
        with suppress(FileExistsError):
            new = file.with_suffix(".new")
            new.write_text(hotkey + "\n", encoding="ascii")
            os.link(new, file)  # whole, and never in place of an earlier one
        file.with_suffix(".new").unlink(missing_ok=True)
        owner = file.read_text(encoding="ascii", errors="replace").strip()
    except OSError as error:
        raise StartError(f"{file}: {error.strerror}") from error
    if owner != hotkey:
        raise StartError(
            f"{root} holds the runs of hotkey {owner[:60]!r}, and this one is {hotkey}",
            remedy="set another ARENA_DATA_DIR, or name the wallet that it belongs to",
        )


async def check_machine(data_dir: Path) -> None:
    """The checks of `arena doctor` that a validator needs. Raises StartError by the first lack.

    There is no way around the isolation: agents never run unconfined.
    """
    checks = [await check_isolation(), check_memory(), check_disk(data_dir)]
    for check in checks:
        if check.ok:
            _log.info("checked", what=check.name, detail=check.detail)
        elif check.name == "disk":  # claims wait for room; what is in hand may go on
            _log.warning("checked", what=check.name, detail=check.detail, remedy=check.remedy)
        else:
            raise StartError(f"{check.name}: {check.detail}", remedy=check.remedy)


async def check_allowed(chain: ChainWatch, hotkey: str, minimum_stake: float) -> None:
    """That the metagraph lets this hotkey validate. Raises NotAllowedError.

    A chain that does not answer is no reason to stay away: the arena knows who may.
    """
    subnet = await chain.look()
    if subnet is None:
        _log.warning("not checked on chain whether this hotkey may validate", hotkey=hotkey)
        return
    reason = not_allowed(subnet, hotkey, minimum_stake)
    if reason is not None:
        raise NotAllowedError(reason)
    peer = subnet.peer(hotkey)
    assert peer is not None
    _log.info("registered", hotkey=hotkey, uid=peer.uid, netuid=subnet.netuid, block=subnet.block)


async def check_arena(session: ArenaSession) -> None:
    """That the arena is one, and its clock ours. Raises StartError.

    One that does not answer now is waited for later.
    """
    try:
        await session.json("GET", "/health", backoff=ONCE)
    except RefusedError as error:
        raise StartError(
            f"what answers for the arena is none: {error.message}", remedy="check --arena.url"
        ) from error
    except ArenaApiError as error:
        _log.warning("the arena does not answer yet", code=error.code, error=str(error))
        return
    skew = session.skew_s
    if skew is None or abs(skew) < _NOTABLE_SKEW_S:
        return
    side = "behind" if skew > 0 else "ahead of"
    line = f"this machine's clock is {abs(skew):.0f} s {side} the arena's"
    remedy = "set it: timedatectl set-ntp true"
    if abs(skew) > SKEW_S:
        raise StartError(f"{line}, and {SKEW_S:.0f} s are allowed", remedy=remedy)
    _log.warning(line, remedy=remedy)
