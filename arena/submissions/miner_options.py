"""Options of a miner's commands, and the signed client that they make."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from arena.exceptions import SettingsError
from arena.settings import load_settings
from arena.wallets import Hotkey, open_hotkey
from sandbox.terminal import console, plain

if TYPE_CHECKING:
    from arena.client.backoff import Backoff
    from arena.client.exceptions import ArenaApiError
    from arena.client.miner import MinerClient

ArenaUrl = Annotated[
    str | None,
    typer.Option("--arena.url", envvar="ARENA_URL", help="The arena's address, https://host."),
]
WalletName = Annotated[
    str | None,
    typer.Option("--wallet.name", envvar="BT_WALLET", help="Wallet whose hotkey submits."),
]
WalletHotkey = Annotated[
    str | None, typer.Option("--wallet.hotkey", envvar="BT_WALLET_HOTKEY", help="Its hotkey.")
]
WalletPath = Annotated[
    Path | None, typer.Option("--wallet.path", envvar="BT_WALLET_PATH", help="Where wallets lie.")
]


@dataclass(frozen=True, slots=True)
class Account:
    """Whose calls these are, and to which arena."""

    url: str
    hotkey: Hotkey

    @property
    def address(self) -> str:
        """The hotkey's SS58 address."""
        return self.hotkey.signer.address


def account(url: str | None, name: str | None, hotkey: str | None, path: Path | None) -> Account:
    """The account that the options name. Raises SettingsError."""
    if url is None or not url.startswith(("http://", "https://")):
        raise SettingsError(
            "which arena?", remedy="give --arena.url https://host, or set ARENA_URL"
        )
    given = {"wallet_name": name, "wallet_hotkey": hotkey, "wallet_path": path}
    settings = load_settings().model_copy(
        update={key: value for key, value in given.items() if value is not None}
    )
    return Account(url, open_hotkey(settings))


@asynccontextmanager
async def open_client(
    who: Account, *, backoff: Backoff | None = None
) -> AsyncIterator[MinerClient]:
    """A signed client while the context lasts; what is tried again is told."""
    from arena.client.miner import PATIENCE, MinerClient
    from arena.client.session import ArenaSession

    def told(error: ArenaApiError, wait: float) -> None:
        console.print(f"{plain(error.message)}; again in {wait:.0f} s", soft_wrap=True)

    async with ArenaSession(who.url, who.hotkey.signer, told=told) as session:
        yield MinerClient(session, backoff=backoff or PATIENCE)


def token_from(file: Path | None, variable: str | None) -> str:
    """A credential from a file, standard input (`-`) or an environment variable.

    Never from the command line: every user of the machine reads that. Raises SettingsError.
    """
    if (file is None) == (variable is None):
        raise SettingsError(
            "give the credential by --file FILE (- is standard input) or --env NAME"
        )
    if variable is not None:
        text = os.environ.get(variable, "")
        where = f"the variable {variable}"
    else:
        assert file is not None
        text = _read(file)
        where = "standard input" if str(file) == "-" else str(file)
    token = text.strip()
    if not token:
        raise SettingsError(f"{where} holds no credential")
    return token


def _read(file: Path) -> str:
    try:
        if str(file) == "-":
            return typer.get_text_stream("stdin").read(64 << 10)
        with file.open(encoding="utf-8") as opened:
            return opened.read(64 << 10)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None
