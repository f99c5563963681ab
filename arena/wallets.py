"""Whose hotkey signs: a wallet of the Bittensor SDK, or a local key made on first use."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arena.exceptions import SettingsError
from arena.runs.signing import KeypairSigner
from arena.settings import ArenaSettings

if TYPE_CHECKING:
    from bittensor.wallet import Wallet

LOCAL_WALLET = "local"
WALLETS = "wallets"


@dataclass(frozen=True, slots=True)
class Hotkey:
    """A key that is ready to sign. `local`: this machine made it, and nobody else knows it."""

    signer: KeypairSigner
    local: bool


def open_hotkey(settings: ArenaSettings) -> Hotkey:
    """The hotkey that the settings name; without any, the data directory's own.

    Raises SettingsError for a hotkey that is missing, encrypted, broken, or not sr25519.
    """
    named = (settings.wallet_name, settings.wallet_hotkey, settings.wallet_path)
    if any(part is not None for part in named):
        return Hotkey(_read(settings), local=False)
    return Hotkey(_local(settings.data_dir / WALLETS), local=True)


def _read(settings: ArenaSettings) -> KeypairSigner:
    from bittensor.wallet import DEFAULT_WALLET_PATH, Wallet

    path = str(settings.wallet_path or DEFAULT_WALLET_PATH)
    try:
        wallet = Wallet(
            settings.wallet_name or "default", settings.wallet_hotkey or "default", path
        )
    except ValueError as error:
        raise SettingsError(f"no such wallet: {error}") from None
    what = f"hotkey {wallet.hotkey_str} of wallet {wallet.name} in {path}"
    if not Path(wallet.hotkey_file.path).is_file():
        raise SettingsError(
            f"there is no {what}",
            remedy="check --wallet.name, --wallet.hotkey and --wallet.path, or leave them out to"
            " sign with a local key",
        )
    return _signer(wallet, what)


def _signer(wallet: Wallet, what: str) -> KeypairSigner:
    from bittensor.keyfiles import KeyfileError
    from bittensor.sp_core import CRYPTO_SR25519

    try:
        # Asked first: reading an encrypted key would ask for its password, and wait.
        if wallet.hotkey_file.is_encrypted():
            raise SettingsError(
                f"{what} is encrypted", remedy="a validator signs unattended: give it a plain one"
            )
        pair = wallet.hotkey
        pair.sign(b"")  # a public key alone is read as well
    except (KeyfileError, OSError, ValueError) as error:
        raise SettingsError(f"{what} cannot be read: {error}") from None
    if pair.crypto_type != CRYPTO_SR25519:
        raise SettingsError(f"{what} is not an sr25519 key", remedy="give one that is")
    return KeypairSigner(pair)


def _local(directory: Path) -> KeypairSigner:
    from bittensor.wallet import Wallet

    wallet = Wallet(LOCAL_WALLET, "default", str(directory))
    file = Path(wallet.hotkey_file.path)
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (directory / ".lock").open("ab") as lock:  # two first races at once
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                wallet.create_new_hotkey(use_password=False, suppress=True)
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror or error}") from error
    return _signer(wallet, f"the local hotkey in {directory}")
