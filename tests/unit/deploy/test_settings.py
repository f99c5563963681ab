"""`.env.example` names every setting there is, none that is not, and no secret's value."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic_settings import BaseSettings

from arena.api.settings import ApiSettings
from arena.conducting.settings import ConductorSettings
from arena.problems.settings import BankSettings
from arena.settings import ArenaSettings
from judge.settings import JudgeSettings
from neurons.validating.artefact_settings import ArtefactSettings
from neurons.validating.settings import ValidatorSettings
from sandbox.isolation.settings import IsolationSettings
from sandbox.models.settings import ModelSettings

ROOT = Path(__file__).parents[3]
CLASSES: tuple[type[BaseSettings], ...] = (
    ArenaSettings,
    ApiSettings,
    ConductorSettings,
    BankSettings,
    ValidatorSettings,
    ArtefactSettings,
    IsolationSettings,
    ModelSettings,
    JudgeSettings,
)
OTHERS = {
    "ARENA_LOG_FORMAT",
    "ARENA_URL",
    "BT_NETWORK",
    "BT_WALLET",
    "BT_WALLET_HOTKEY",
    "BT_WALLET_PATH",
}
"""Read by commands and by no settings class."""
_LINE = re.compile(r"#?([A-Z][A-Z0-9_]*)=(.*)")


def _example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    found = [match for line in lines if (match := _LINE.fullmatch(line))]
    names = [match[1] for match in found]
    assert len(names) == len(set(names)), "a name stands there twice"
    return {match[1]: match[2] for match in found}


def _names(settings: type[BaseSettings]) -> set[str]:
    prefix = settings.model_config["env_prefix"]
    return {(prefix + name).upper() for name in settings.model_fields}


def _composed() -> set[str]:
    """What docker-compose.yml asks the environment for."""
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    return set(re.findall(r"\$\{([A-Z0-9_]+)", text))


@pytest.mark.parametrize("settings", CLASSES, ids=lambda cls: cls.__name__)
def test_every_setting_stands_in_the_example(settings: type[BaseSettings]) -> None:
    assert _names(settings) - _example().keys() == set()


def test_every_name_in_the_example_is_a_setting() -> None:
    known = set().union(*(_names(settings) for settings in CLASSES), _composed(), OTHERS)
    assert _example().keys() - known == set()


def test_what_the_containers_ask_for_stands_in_the_example() -> None:
    images = {"ARENA_POSTGRES_IMAGE", "ARENA_PROMETHEUS_IMAGE", "ARENA_GRAFANA_IMAGE"}
    assert _composed() - images - _example().keys() == set()


def test_no_secret_has_a_value() -> None:
    words = re.compile(r"PASSWORD|SECRET|_TOKEN$|MODEL_KEY|BANK_KEY|ACCESS_KEY")
    secret = {name: value for name, value in _example().items() if words.search(name)}
    assert secret
    assert {name for name, value in secret.items() if value} == set()


@pytest.mark.parametrize("settings", CLASSES, ids=lambda cls: cls.__name__)
def test_the_values_in_the_example_are_the_defaults(
    settings: type[BaseSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in _names(settings):
        monkeypatch.delenv(name, raising=False)
    plain = settings(_env_file=None)
    example = _example()
    for name in _names(settings):
        if example[name]:
            monkeypatch.setenv(name, example[name])
    assert settings(_env_file=None) == plain


def test_the_example_sets_nothing_but_which_file_is_read() -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == ["ARENA_ENV_FILE=.env"]
