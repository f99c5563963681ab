"""The bank's settings and its secret key."""

from __future__ import annotations

import stat
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from arena.exceptions import SettingsError
from arena.problems.settings import KEY_FILE, BankSettings, bank_key, load_bank_settings


def test_the_rule_of_rotations_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_BANK_ROTATE_HOURS", "12")
    monkeypatch.setenv("ARENA_BANK_HELD_OUT_MIN", "75")
    rule = load_bank_settings().rotation
    assert (rule.every, rule.held_out_min) == (timedelta(hours=12), 75)


@pytest.mark.parametrize("value", ["-1", "nan", "many"])
def test_a_setting_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ARENA_BANK_OPENS", value)
    with pytest.raises(SettingsError, match="ARENA_BANK_OPENS"):
        load_bank_settings()


def test_a_key_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    key = bank_key(BankSettings(key=None), data)
    assert bank_key(BankSettings(key=None), data) == key
    assert len(key) == 64
    assert stat.S_IMODE((data / KEY_FILE).stat().st_mode) == 0o600
    assert [path.name for path in data.iterdir()] == [KEY_FILE]
    assert bank_key(BankSettings(key=None), tmp_path / "other") != key


def test_the_key_of_the_settings_wins_and_is_never_shown(tmp_path: Path) -> None:
    settings = BankSettings(key=SecretStr("a key of sixteen."))
    assert bank_key(settings, tmp_path) == b"a key of sixteen."
    assert not list(tmp_path.iterdir())
    assert "sixteen" not in repr(settings)


def test_a_key_that_is_too_short_or_unreadable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="shorter than 16") as caught:
        bank_key(BankSettings(key=SecretStr("short")), tmp_path)
    assert "'short'" not in str(caught.value)
    (tmp_path / KEY_FILE).write_text("\n")
    with pytest.raises(SettingsError, match="holds no key"):
        bank_key(BankSettings(key=None), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="ARENA_DATA_DIR"):
        bank_key(BankSettings(key=None), tmp_path / "file")
