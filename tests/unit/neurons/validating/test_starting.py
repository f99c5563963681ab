"""What keeps a validator from starting, in one line each."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from arena.exceptions import SettingsError
from neurons.validating.exceptions import StartError
from neurons.validating.settings import Drain, load_validator_settings
from neurons.validating.starting import check_arena, check_hotkey, locked
from tests.unit.neurons.validating.wire import NOW, Wire, client_of


def _health(ahead: float) -> httpx.Response:
    date = format_datetime(NOW + timedelta(seconds=ahead), usegmt=True)
    return httpx.Response(200, json={"status": "ok"}, headers={"date": date})


@pytest.mark.parametrize(("ahead", "words"), [(95, "95 s behind"), (-3_600, "3600 s ahead of")])
async def test_a_clock_that_is_wrong_keeps_it_out(ahead: float, words: str) -> None:
    with pytest.raises(StartError, match=words):
        await check_arena(client_of(Wire(health=_health(ahead))).session)


@pytest.mark.parametrize(("ahead", "lines"), [(0, 0), (5, 0), (30, 1)])
async def test_a_clock_that_is_a_little_wrong_is_told(ahead: float, lines: int) -> None:
    with capture_logs() as logs:
        await check_arena(client_of(Wire(health=_health(ahead))).session)
    assert len(logs) == lines


async def test_an_arena_that_is_away_is_no_reason_to_stay_away() -> None:
    with capture_logs() as logs:
        await check_arena(client_of(Wire(health=httpx.ConnectError("x"))).session)
    assert [line["event"] for line in logs] == ["the arena does not answer yet"]


async def test_what_is_no_arena_is_told() -> None:
    with pytest.raises(StartError, match=r"check --arena\.url"):
        await check_arena(client_of(Wire(health=httpx.Response(404))).session)


def test_a_directory_belongs_to_one_hotkey_for_good(tmp_path: Path) -> None:
    check_hotkey(tmp_path, "5Alice")
    check_hotkey(tmp_path, "5Alice")
    with pytest.raises(StartError, match=r"5Alice.*5Bob"):
        check_hotkey(tmp_path, "5Bob")
    check_hotkey(tmp_path, "5Alice")
    assert [path.name for path in tmp_path.iterdir()] == ["hotkey"]


def test_one_validator_a_directory(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "v"),
        pytest.raises(StartError, match="another validator"),
        locked(tmp_path / "v"),
    ):
        pass
    with locked(tmp_path / "v"):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [("USD_A_DAY", "nan"), ("DISK_FLOOR_GIB", "-1"), ("DRAIN", "x"), ("POLL_SECONDS", "inf")],
)
def test_a_setting_that_is_wrong_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"ARENA_VALIDATOR_{name}", value)
    with pytest.raises(SettingsError, match=f"ARENA_VALIDATOR_{name}"):
        load_validator_settings()


def test_options_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARENA_VALIDATOR_NETUID", "3")
    monkeypatch.setenv("ARENA_VALIDATOR_DRAIN", "keep")
    given: dict[str, Any] = {"netuid": 7, "drain": None}
    settings = load_validator_settings(given)
    assert (settings.netuid, settings.drain) == (7, Drain.KEEP)
