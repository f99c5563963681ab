"""Races sign what they record: one chain a hotkey, on disk and in the database alike."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from bittensor.wallet import Wallet
from pydantic import SecretStr
from sqlalchemy import text

from arena.db.engine import open_database
from arena.runs.frames import SpooledRecord, encode_frame, read_spool
from arena.runs.record import Kind
from arena.runs.seal import Sealed, signing_message
from arena.runs.signing import verify_signature
from arena.runs.spool import FILE_NAME
from arena.settings import ArenaSettings
from tests.integration.racing import ModelServer, RaceProcess, model_server, write_world
from tests.isolations import open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]


@pytest.fixture(autouse=True)
async def sandbox() -> None:
    await (await open_or_skip("bubblewrap")).close()


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with model_server() as running:
        running.tokens = 40
        yield running


@pytest.fixture
def env(database_url: str, tmp_path: Path) -> dict[str, str]:
    return {"ARENA_DATABASE_URL": database_url, "ARENA_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def world(tmp_path: Path) -> list[str]:
    return [*write_world(tmp_path), "--sandbox", "bubblewrap", "--no-judge"]


def _run(directory: Path, env: dict[str, str], *arguments: str) -> RaceProcess:
    return RaceProcess(["race", "run", *arguments], directory, env)


def _spooled(out: Path) -> list[SpooledRecord]:
    return [frame.content for frame in read_spool(out / FILE_NAME)]


async def _stored(env: dict[str, str]) -> list[Sealed]:
    settings = ArenaSettings(database_url=SecretStr(env["ARENA_DATABASE_URL"]))
    query = text("SELECT content, signature FROM seals ORDER BY validator, sequence")
    async with open_database(settings) as database, database.engine.connect() as connection:
        return [Sealed(row.content, row.signature) for row in await connection.execute(query)]


def _assert_one_chain(seals: list[Sealed], validator: str) -> None:
    previous = None
    for number, one in enumerate(seals, start=1):
        seal = one.seal
        assert (seal.validator, seal.sequence, seal.previous) == (validator, number, previous)
        assert verify_signature(validator, signing_message(one.content), one.signature)
        previous = one.hash


async def test_a_wallets_hotkey_seals_runs_and_later_verdicts_in_one_chain(
    tmp_path: Path, env: dict[str, str], world: list[str], model: ModelServer
) -> None:
    wallet = Wallet("mine", "hot", str(tmp_path / "wallets"))
    wallet.create_new_hotkey(suppress=True)
    named = ["--wallet.name", "mine", "--wallet.hotkey", "hot"]
    named += ["--wallet.path", str(tmp_path / "wallets")]
    served = ["--model-url", model.url]
    race = _run(tmp_path, env, "asker.py", *world, *served, *named, "--out", "out")
    assert race.end()[0] == 0, race.said
    judge = ["--judge-model", "oracle"]
    later = RaceProcess(["race", "judge", "--out", "out", *served, *judge, *named], tmp_path, env)
    assert later.end()[0] == 0, later.said
    address = wallet.hotkey.ss58_address
    assert f"records are signed by {address}" in race.said
    found = _spooled(tmp_path / "out")
    assert [one.record.kind for one in found] == [Kind.RUN] * 4 + [Kind.VERDICT] * 4
    assert all(one.sealed.bound for one in found)
    seals = [one.sealed.sealed for one in found]
    _assert_one_chain(seals, address)
    assert await _stored(env) == seals


async def test_races_of_one_validator_at_once_and_killed_ones_share_a_chain(
    tmp_path: Path, env: dict[str, str], world: list[str], model: ModelServer
) -> None:
    served = [*world, "--model-url", model.url, "--workers", "1"]
    model.held = lambda query: query.startswith("problem 1")
    killed = _run(tmp_path, env, "asker.py", *served, "--out", "killed")
    killed.until("1/4")
    beside = _run(tmp_path, env, "knower.py", *served, "--out", "beside")
    assert beside.end()[0] == 0, beside.said
    killed.signal(signal.SIGKILL)
    killed.end()
    model.held = lambda query: False
    model.let_go.set()
    again = _run(tmp_path, env, "asker.py", *served, "--out", "killed")
    assert again.end()[0] == 0, again.said
    assert "a local key that nobody else knows" in again.said
    seals = await _stored(env)
    assert len(seals) == 8
    _assert_one_chain(seals, seals[0].seal.validator)
    assert {one.sealed.sealed.hash for out in ("killed", "beside")
            for one in _spooled(tmp_path / out)} == {one.hash for one in seals}  # fmt: skip


async def test_a_lost_ledger_goes_on_from_the_database_and_an_old_copy_is_refused(
    tmp_path: Path, env: dict[str, str], world: list[str]
) -> None:
    limited = ["knower.py", *world, "--limit", "1"]
    ledger, copy = tmp_path / "data" / "ledger", tmp_path / "copy"
    assert _run(tmp_path, env, *limited, "--out", "one").end()[0] == 0
    shutil.copytree(ledger, copy)
    assert _run(tmp_path, env, *limited, "--out", "two").end()[0] == 0
    shutil.rmtree(ledger)
    shutil.copytree(copy, ledger)
    refused = _run(tmp_path, env, *limited, "--out", "three")
    assert refused.end()[0] == 1
    assert "the database has 2 seals" in refused.said
    shutil.rmtree(ledger)
    adopted = _run(tmp_path, env, *limited, "--out", "four")
    assert adopted.end()[0] == 0, adopted.said
    assert "its chain goes on after number 2" in adopted.said
    seals = await _stored(env)
    assert len(seals) == 3
    _assert_one_chain(seals, seals[0].seal.validator)


async def test_a_race_from_before_there_were_seals_is_read_and_not_gone_on_with(
    tmp_path: Path, env: dict[str, str], world: list[str]
) -> None:
    race = [*world, "--limit", "1", "--out", "out"]
    assert _run(tmp_path, env, "knower.py", *race).end()[0] == 0
    path = tmp_path / "out" / FILE_NAME
    path.write_bytes(b"".join(encode_frame(one.record, None) for one in _spooled(tmp_path / "out")))
    again = _run(tmp_path, env, "knower.py", *race)
    assert again.end()[0] == 1
    assert "begun before records were sealed" in again.said
    assert "Traceback" not in again.said
    assert [one.record.kind for one in _spooled(tmp_path / "out")] == [Kind.RUN]


async def test_a_hotkey_that_is_not_there_is_said_before_anything_runs(
    tmp_path: Path, env: dict[str, str], world: list[str]
) -> None:
    race = _run(tmp_path, env | {"ARENA_WALLET_NAME": "nobody"}, "knower.py", *world)
    assert race.end()[0] == 1
    assert "there is no hotkey default of wallet nobody" in race.said
    assert "Traceback" not in race.said
