"""Secrets at rest: what was sealed opens with its key, and with nothing else."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st

from arena.exceptions import SecretError, SettingsError
from arena.secrets import KEY_FILE, SecretBox, open_secret_box
from arena.settings import ArenaSettings, load_settings

_OLD, _NEW = Fernet.generate_key(), Fernet.generate_key()
_BOX = SecretBox([_NEW])
_SEALED = _BOX.seal(b"a miner's credential")


def _settings(directory: Path, keys: str | None = None) -> ArenaSettings:
    return ArenaSettings(data_dir=directory, secret_keys=keys)  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_what_is_sealed_opens(secret: bytes) -> None:
    sealed = _BOX.seal(secret)
    assert _BOX.open(sealed) == secret
    assert sealed != _BOX.seal(secret)  # two equal secrets do not look it


@given(st.binary(max_size=200))
def test_bytes_that_are_no_seal_are_refused(data: bytes) -> None:
    with pytest.raises(SecretError):
        _BOX.open(data)


@given(st.integers(0, len(_SEALED) - 5), st.integers(1, 25))
def test_a_changed_seal_is_refused(place: int, step: int) -> None:
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    other = alphabet[(_SEALED[place] + step) % 26]
    changed = _SEALED[:place] + bytes([other]) + _SEALED[place + 1 :]
    if changed != _SEALED:
        with pytest.raises(SecretError):
            _BOX.open(changed)


def test_keys_change_without_losing_a_secret() -> None:
    old, both, new = SecretBox([_OLD]), SecretBox([_NEW, _OLD]), SecretBox([_NEW])
    sealed = old.seal(b"x")
    assert both.open(sealed) == b"x"
    assert new.open(both.seal(b"y")) == b"y"  # the first key seals
    assert new.open(both.renew(sealed)) == b"x"
    for refused in (new.open, new.renew, old.open):
        with pytest.raises(SecretError) as caught:
            refused(sealed if refused != old.open else both.seal(b"y"))
        assert caught.value.__cause__ is None


def test_the_keys_of_the_setting_are_used_and_no_file_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARENA_SECRET_KEYS", f"{_NEW.decode()}, {_OLD.decode()}")
    settings = load_settings()
    box = open_secret_box(settings)
    assert box.open(SecretBox([_OLD]).seal(b"z")) == b"z"
    assert list(tmp_path.iterdir()) == []
    assert _NEW.decode() not in repr(settings) + repr(box)


def test_without_a_setting_one_key_is_made_that_only_its_owner_reads(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    sealed = open_secret_box(_settings(directory)).seal(b"x")
    assert open_secret_box(_settings(directory, " ")).open(sealed) == b"x"
    file = directory / KEY_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(directory.iterdir()) == [file]


def test_processes_that_start_at_once_share_one_key(tmp_path: Path) -> None:
    boxes: list[SecretBox] = []
    threads = [
        threading.Thread(target=lambda: boxes.append(open_secret_box(_settings(tmp_path))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sealed = boxes[0].seal(b"x")
    assert [box.open(sealed) for box in boxes] == [b"x"] * 8


@pytest.mark.parametrize("keys", ["short", f"{_NEW.decode()},*", _NEW.decode()[:-4], "é" * 44, ","])
def test_a_bad_key_is_refused_without_showing_it(tmp_path: Path, keys: str) -> None:
    with pytest.raises(SettingsError, match="ARENA_SECRET_KEYS") as caught:
        open_secret_box(_settings(tmp_path, keys))
    assert keys == "," or keys not in str(caught.value)


def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    open_secret_box(_settings(tmp_path))
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(SettingsError, match="others may read"):
        open_secret_box(_settings(tmp_path))


def test_a_damaged_key_file_is_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / KEY_FILE
    for content in (b"", b"no key\n", b"\xff" * 40):
        file.write_bytes(content)
        file.chmod(0o600)
        with pytest.raises(SettingsError, match="32 bytes"):
            open_secret_box(_settings(tmp_path))
        assert file.read_bytes() == content
