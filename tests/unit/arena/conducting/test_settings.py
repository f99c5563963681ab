"""The operator's settings and rules: read whole, or refused with what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from arena.conducting.settings import load_conductor_settings, read_rules
from arena.exceptions import SettingsError
from arena.season.rules import SeasonRules
from scoring.types import Bucket


def test_rules_are_read_from_toml_and_json(tmp_path: Path) -> None:
    toml, json = tmp_path / "rules.toml", tmp_path / "rules.json"
    toml.write_text('closing = "13:00"\nvalidators = 2\n[quota]\nproduct = 5\nshop = 5\n')
    json.write_text('{"closing": "13:00", "validators": 2, "quota": {"product": 5, "shop": 5}}')
    rules = read_rules(toml)
    assert rules == read_rules(json)
    assert rules.closing == "13:00"
    assert rules.quota == {Bucket.PRODUCT: 5, Bucket.SHOP: 5}
    assert rules.deadline_hours == SeasonRules().deadline_hours


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("rules.toml", b"closing = ", "neither TOML nor JSON"),
        ("rules.json", b"{", "neither TOML nor JSON"),
        ("rules.json", b"\xff", "neither TOML nor JSON"),
        ("rules.json", b"[]", "rules"),
        ("rules.toml", b"closing_time = 1", "closing_time"),
        ("rules.toml", b"quorum = 3\nvalidators = 2", "quorum"),
        ("rules.toml", b"qualifying_threshold = nan", "qualifying_threshold"),
    ],
)
def test_rules_that_are_none_are_refused_by_name(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=why):
        read_rules(file)


def test_a_rules_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml"):
        read_rules(tmp_path / "none.toml")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_CONDUCTOR_DRAND_SERVERS", "https://a.example/, https://b.example")
    monkeypatch.setenv("ARENA_CONDUCTOR_SILENCE_HOURS", "2")
    settings = load_conductor_settings()
    assert settings.drand_servers == ("https://a.example", "https://b.example")
    assert settings.silence.total_seconds() == 7_200


def test_a_setting_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_CONDUCTOR_EVERY", "0")
    with pytest.raises(SettingsError, match="ARENA_CONDUCTOR_EVERY"):
        load_conductor_settings()
