"""Whose hotkey signs: a wallet that is named, or a local key of this machine."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest
from bittensor.keyfiles import Keypair
from bittensor.sp_core import CRYPTO_ED25519
from bittensor.wallet import Wallet

from arena.exceptions import SettingsError
from arena.runs.signing import verify_signature
from arena.settings import ArenaSettings
from arena.wallets import open_hotkey


def _settings(directory: Path, **more: object) -> ArenaSettings:
    return ArenaSettings(data_dir=directory, **more)  # type: ignore[arg-type]


def _wallet(directory: Path, key: Keypair, **options: object) -> ArenaSettings:
    wallet = Wallet("mine", "hot", str(directory))
    wallet.hotkey_file.set_keypair(key, **options)  # type: ignore[arg-type]
    return _settings(directory, wallet_name="mine", wallet_hotkey="hot", wallet_path=directory)


def test_the_named_hotkey_signs(tmp_path: Path) -> None:
    key = Keypair.create_from_uri("//Alice")
    found = open_hotkey(_wallet(tmp_path, key, encrypt=False))
    assert (found.local, found.signer.address) == (False, key.ss58_address)
    assert verify_signature(key.ss58_address, b"text", found.signer.sign(b"text"))


def test_without_a_name_a_local_key_is_made_once_and_only_its_owner_reads_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first, second = (open_hotkey(_settings(tmp_path)) for _ in range(2))
    assert first.local
    assert first.signer.address == second.signer.address
    assert open_hotkey(_settings(tmp_path / "other")).signer.address != first.signer.address
    keys = [path for path in (tmp_path / "wallets").rglob("*") if path.parent.name == "hotkeys"]
    assert keys
    assert {stat.S_IMODE(path.stat().st_mode) for path in keys} == {0o600}
    assert capfd.readouterr() == ("", "")  # no mnemonic on a terminal


def test_two_first_races_at_once_make_one_key(tmp_path: Path) -> None:
    found: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(open_hotkey(_settings(tmp_path)).signer.address)
        )
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_a_hotkey_that_is_missing_is_one_line_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no hotkey hot of wallet mine") as caught:
        open_hotkey(
            _settings(tmp_path, wallet_name="mine", wallet_hotkey="hot", wallet_path=tmp_path)
        )
    assert "--wallet.name" in (caught.value.remedy or "")


def test_an_encrypted_hotkey_is_refused_without_asking(tmp_path: Path) -> None:
    settings = _wallet(tmp_path, Keypair.create_from_uri("//Alice"), encrypt=True, password="long")
    with pytest.raises(SettingsError, match="is encrypted"):
        open_hotkey(settings)


def test_a_hotkey_of_another_kind_is_refused(tmp_path: Path) -> None:
    key = Keypair.create_from_seed(bytes(32), CRYPTO_ED25519)
    with pytest.raises(SettingsError, match="not an sr25519 key"):
        open_hotkey(_wallet(tmp_path, key, encrypt=False))


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"[]"])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    settings = _wallet(tmp_path, Keypair.create_from_uri("//Alice"), encrypt=False)
    (tmp_path / "mine" / "hotkeys" / "hot").write_bytes(content)
    with pytest.raises(SettingsError, match="cannot be read"):
        open_hotkey(settings)
    assert "\n" not in str(settings)


def test_a_public_key_alone_cannot_sign(tmp_path: Path) -> None:
    public = Keypair(ss58_address=Keypair.create_from_uri("//Alice").ss58_address)
    with pytest.raises(SettingsError, match="cannot"):
        open_hotkey(_wallet(tmp_path, public, encrypt=False))


def test_wallet_and_hotkey_in_one_name_as_the_sdk_takes_them(tmp_path: Path) -> None:
    key = Keypair.create_from_uri("//Bob")
    _wallet(tmp_path, key, encrypt=False)
    settings = _settings(tmp_path, wallet_name="mine/hot", wallet_path=tmp_path)
    assert open_hotkey(settings).signer.address == key.ss58_address
    with pytest.raises(SettingsError, match="no such wallet"):
        open_hotkey(_settings(tmp_path, wallet_name="a/b/c", wallet_path=tmp_path))
