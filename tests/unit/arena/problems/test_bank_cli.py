"""`arena problems` on a bank in a real database, as an operator calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arena.exceptions import BankError, RewordingError, SettingsError
from arena.problems.suite import load_suite, write_suite
from scoring.exceptions import ProblemError
from scoring.types import Json
from tests.unit.arena.problems.banks import problem
from tests.unit.arena.problems.test_cli import call, catalogue_of
from tests.unit.arena.problems.world import World

pytestmark = pytest.mark.database


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue file with enough products for a bank and a suite."""
    return catalogue_of(World(700, seed=2), tmp_path_factory.mktemp("wide") / "documents.jsonl")


@pytest.fixture(autouse=True)
def arena(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty database and data directory, and a rotation that a small bank can do."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARENA_DATABASE_URL", database_url)
    monkeypatch.setenv("ARENA_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("ARENA_BANK_KEY", "the same key in every test")
    for name, value in {"OPENS": 1, "RETIRES": 1, "HELD_OUT_MIN": 2, "OPEN_MIN": 0}.items():
        monkeypatch.setenv(f"ARENA_BANK_{name}", str(value))


def told(*arguments: str | Path) -> dict[str, Json]:
    """What `--json -` says."""
    value: dict[str, Json] = json.loads(call(*arguments, "--json", "-"))
    return value


def counts() -> dict[tuple[str, str], int]:
    rows: list[dict[str, Json]] = json.loads(call("list", "--json", "-"))["bank"]
    return {(str(r["pool"]), str(r["bucket"])): int(str(r["problems"])) for r in rows}


def ids(pool: str) -> list[str]:
    return [
        p["problem_id"] for p in json.loads(call("list", "--pool", pool, "--json", "-"))["problems"]
    ]


def test_the_life_of_a_bank(catalogue: Path, tmp_path: Path) -> None:
    assert counts() == {}
    suite = tmp_path / "suite.jsonl"
    call("synthesise", "--catalog", catalogue, "--count", "6", "--seed", "4", "--out", suite)
    assert told("import", suite, "--pool", "suite:v1", "--catalog", catalogue)["admitted"] == 6
    assert told("import", suite, "--pool", "suite:v1")["already"] == 6
    grow = ("synthesise", "--catalog", catalogue, "--to")
    assert told(*grow, "held_out", "--count", "18")["admitted"] == 18
    assert told(*grow, "open", "--bucket", "product=2", "--mix", "easy=1")["admitted"] == 2
    before = counts()["bank:held_out", "shop"]
    dry = told("rotate", "--seed", "s", "--dry-run")
    done = told("rotate", "--seed", "s")
    assert (dry["applied"], done["applied"], dry["buckets"]) == (False, True, done["buckets"])
    assert counts()["bank:held_out", "shop"] < before == 6
    assert counts()["bank:retired", "product"] == 1
    with pytest.raises(BankError) as caught:
        call("rotate")
    assert caught.value.code == "bank.rotation_not_due"
    opened = ids("bank:open")[0]
    assert told("retire", opened, "--reason", "gone")["retired"] == 1
    assert told("retire", opened, "--reason", "gone")["retired_before"] == 1
    with pytest.raises(BankError) as caught:
        call("import", suite, "--pool", "bank:open")
    assert caught.value.code == "bank.other_pool"


def test_held_out_texts_and_seeds_are_not_printed_unless_asked_for(catalogue: Path) -> None:
    call("synthesise", "--catalog", catalogue, "--to", "held_out", "--count", "3")
    hidden = told("list", "--pool", "bank:held_out")["problems"]
    assert isinstance(hidden, list)
    shown = told("list", "--pool", "bank:held_out", "--reveal")["problems"]
    assert isinstance(shown, list)
    for before, after in zip(hidden, shown, strict=True):
        assert isinstance(before, dict)
        assert isinstance(after, dict)
        assert "query" not in before
        assert "seed" not in str(before)
        assert after["query"]
        assert "seed" in str(after)
        assert "reward" not in after


def test_an_opened_problem_does_not_tell_the_seed_that_others_are_held_out_with(
    catalogue: Path,
) -> None:
    call("synthesise", "--catalog", catalogue, "--to", "held_out", "--count", "18")
    call("rotate")
    opened = told("list", "--pool", "bank:open")["problems"]
    assert isinstance(opened, list)
    assert opened
    assert ids("bank:held_out")
    assert "query" in str(opened)
    assert "seed" not in str(opened)


def test_a_bank_cannot_be_grown_again_by_who_has_the_catalogue(
    catalogue: Path, tmp_path: Path
) -> None:
    """Neither seed nor ids follow from anything public."""
    call("synthesise", "--catalog", catalogue, "--to", "open", "--count", "3")
    first = set(ids("bank:open"))
    guess = tmp_path / "guess.jsonl"
    for seed in range(3):
        call(
            "synthesise",
            "--catalog",
            catalogue,
            "--count",
            "3",
            "--out",
            guess,
            "--seed",
            str(seed),
        )
        assert not first & {p.problem_id for p in load_suite(guess).problems}


def test_problems_that_leave_before_a_suite_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, theirs = tmp_path / "mine.jsonl", tmp_path / "theirs.jsonl"
    write_suite([problem("mine-1", "1000000001"), problem("mine-2", "1000000002")], mine)
    write_suite([problem("theirs", "1000000001")], theirs)
    call("import", mine, "--pool", "bank:open")
    capsys.readouterr()
    result = told("import", theirs, "--pool", "suite:v3")
    retired = result["retired"]
    assert isinstance(retired, list)
    assert len(retired) == 1
    assert "'mine-1'" in str(retired)
    assert "meets a suite" in str(retired)
    with pytest.raises(BankError) as caught:
        call("import", mine, "--pool", "bank:held_out")
    assert caught.value.code == "bank.other_pool"


def test_a_model_may_reword(catalogue: Path) -> None:
    grow = ("synthesise", "--catalog", catalogue, "--to", "held_out", "--count", "3")
    rewording = told(*grow, "--reword-model", "standin/reworder-1")["rewording"]
    assert isinstance(rewording, dict)
    assert rewording["admitted"] == 3
    with pytest.raises(RewordingError):
        call(*grow, "--reword-model", "standin/nobody")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("import", "absent.jsonl", "--pool", "suite:v1"), ProblemError),
        (("import", "absent.jsonl", "--pool", "suite:v9"), BankError),
        (("list", "--pool", "bank:cellar"), BankError),
        (("list", "some.jsonl", "--pool", "bank:open"), SettingsError),
        (("retire", "nobody", "--reason", "x"), BankError),
        (("rotate",), BankError),
    ],
)
def test_what_cannot_be_done_is_an_error(
    arguments: tuple[str, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        call(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--out", "x.jsonl", "--to", "open"),
        ("--out", "x.jsonl", "--reuse"),
        ("--out", "x.jsonl", "--mix", "easy=1"),
        ("--to", "open", "--mix", "easy"),
        ("--to", "open", "--mix", "easy=0"),
        ("--to", "open", "--mix", "easy=-1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    catalogue: Path, arguments: tuple[str, ...]
) -> None:
    with pytest.raises(SettingsError):
        call("synthesise", "--catalog", catalogue, "--count", "1", *arguments)
