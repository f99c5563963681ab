"""Whose key a race's records are sealed with, and where its chain goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from arena.exceptions import SealError
from arena.records.upload import Uploader
from arena.runs.ledger import Ledger
from arena.runs.seal import BlockRef
from arena.settings import ArenaSettings
from arena.wallets import open_hotkey

LEDGERS = "ledger"


def no_block() -> BlockRef | None:
    """What seals say of the chain where no chain is asked."""
    return None


def open_ledger(
    settings: ArenaSettings, tell: Callable[[str], None], block: Callable[[], BlockRef | None]
) -> Ledger:
    """The chain of the hotkey that the settings name; says so when it is a local one.

    Raises SettingsError for a hotkey that cannot be used, SealError for a broken ledger.
    """
    hotkey = open_hotkey(settings)
    address = hotkey.signer.address
    tell(
        f"records are signed by a local key that nobody else knows, {address}; --wallet.name"
        " and --wallet.hotkey sign with a hotkey of yours"
        if hotkey.local
        else f"records are signed by {address}"
    )
    return Ledger(settings.data_dir / LEDGERS, hotkey.signer, block=block)


async def check_chain(ledger: Ledger, uploader: Uploader, tell: Callable[[str], None]) -> None:
    """Compare the chain here with the database's, before a record is sealed.

    A machine that never sealed with this hotkey goes on from there. Raises SealError when
    the database knows a chain that this machine does not: two machines sign, or a ledger
    was put back from an old copy, and the chain would fork.
    """
    address = ledger.signer.address
    stored = await uploader.stored_head(address)
    if stored is None:
        return
    here = await asyncio.to_thread(lambda: ledger.head)
    number = stored.seal.sequence
    if here.sequence == 0:
        await asyncio.to_thread(ledger.adopt, stored)
        tell(f"this machine never sealed with {address}: its chain goes on after number {number}"
             " of the database")  # fmt: skip
    elif number > here.sequence:
        raise SealError(
            f"the database has {number} seals of {address} and this machine knows"
            f" {here.sequence}: another machine signs with it, or {ledger.directory} is an old"
            " copy",
            remedy="sign with another hotkey; or, when no other machine does, remove that"
            " directory to go on from the database",
        )
    elif number == here.sequence and stored.hash != here.hash:
        raise SealError(
            f"the chain of {address} forks at number {number}: {stored.hash} is in the"
            f" database, {here.hash} here",
            remedy="sign with another hotkey",
        )
