"""The operator's table: read from the environment or a file, its keys kept out of sight."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sandbox.exceptions import Fault, ModelError
from sandbox.models import ModelSettings, discover
from sandbox.models.routes import Wire, server_name, with_version
from tests.unit.sandbox.provider import Reply, failed, provider


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no `.env` of the checkout


def test_the_table_comes_from_the_environment_and_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.json").write_text(
        json.dumps([{"model": "b", "wire": "anthropic", "api_key_env": "KEY_OF_B", "usd_in": 3}])
    )
    monkeypatch.setenv("ARENA_MODELS_FILE", str(tmp_path / "t.json"))
    monkeypatch.setenv(
        "ARENA_MODELS", '[{"model": "a", "base_url": "http://h:1", "standin": true}]'
    )
    monkeypatch.setenv("KEY_OF_B", "sk-secret")
    settings = ModelSettings()
    a, b = settings.routes()
    assert (a.server, a.standin, a.api_key) == ("h:1", True, None)
    assert (b.wire, b.usd_in, b.server) == (Wire.ANTHROPIC, 3.0, "anthropic.com")
    assert b.api_key is not None
    assert b.api_key.get_secret_value() == "sk-secret"
    assert "sk-secret" not in f"{settings!r} {b!r} {settings.model_dump_json()}"


def test_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('[{"model": "b", "api_key_env": "KEY_OF_B"}]')
    with pytest.raises(ModelError) as caught:
        ModelSettings(models_file=tmp_path / "t.json").routes()
    assert caught.value.fault is Fault.CALLER
    assert caught.value.remedy == "set KEY_OF_B"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (None, "cannot read"),
        ("{", "not JSON"),
        ("{}", "list"),
        ('[{"model": ""}]', "route 1: model"),
        ('[{"model": "a"}, {"model": "b", "usd_in": NaN}]', "route 2: usd_in"),
        ('[{"model": "a", "usd_out": -1}]', "usd_out"),
        ('[{"model": "a", "base_url": "ftp://x"}]', "http://"),
        ('[{"model": "a", "colour": 1}]', "colour"),
        ('[{"model": "a", "api_key": ["sk-secret"]}]', "api_key"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(
    tmp_path: Path, text: str | None, word: str
) -> None:
    if text is not None:
        (tmp_path / "t.json").write_text(text)
    with pytest.raises(ModelError) as caught:
        ModelSettings(models_file=tmp_path / "t.json").routes()
    assert word in caught.value.message
    assert "sk-secret" not in caught.value.message


@pytest.mark.parametrize(
    "table", ["{", '[{"model": ""}]', '[{"model": "a", "api_key": ["sk-secret"]}]', "7"]
)
def test_a_bad_table_in_the_environment_is_one_clear_error(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARENA_MODELS", table)
    with pytest.raises(ModelError, match="models") as caught:
        ModelSettings()
    assert caught.value.fault is Fault.CALLER
    assert "sk-secret" not in caught.value.message


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1/", "http://h:1/v1"),
        ("https://h/api/v2", "https://h/api/v2"),
    ],
)
def test_an_address_without_a_path_gets_the_usual_one(given: str, base: str) -> None:
    assert with_version(given) == base


def test_a_server_is_named_without_its_credentials() -> None:
    assert server_name("https://user:pw@h.example:8443/v1", Wire.OPENAI) == "h.example:8443"


async def test_a_server_is_asked_which_models_it_serves() -> None:
    listed = b'{"object": "list", "data": [{"id": "y", "object": "model"}, {"id": "x"}]}'
    async with provider(Reply(body=listed)) as p:
        routes = await discover(p.url, server="mine", standin=True)
    assert p.paths == ["/v1/models"]
    assert [(r.model, r.server, r.standin) for r in routes] == [
        ("x", "mine", True),
        ("y", "mine", True),
    ]


@pytest.mark.parametrize("reply", [failed(401), failed(500), Reply(drop=True),
                                   Reply(body=b'{"data": []}'), Reply(body=b"{")])  # fmt: skip
async def test_a_server_without_models_is_said_to_have_none(reply: Reply) -> None:
    async with provider(reply) as p:
        with pytest.raises(ModelError) as caught:
            await discover(p.url)
    assert caught.value.fault is Fault.CALLER
