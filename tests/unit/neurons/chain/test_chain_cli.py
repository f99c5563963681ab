"""`arena chain`: a local chain begun, joined and shown by command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from neurons.chain import open_chain
from neurons.cli import app
from neurons.local_chain.cli import OWNER


def chain(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["chain", *map(str, arguments)])


def shown(file: Path) -> Any:
    out = file.with_name("shown.json")
    assert chain("show", file, "--json", out).exit_code == 0
    return json.loads(out.read_text())


def joined(file: Path, name: str, stake: int = 0) -> Result:
    wallets = file.with_name("wallets")
    return chain(
        *("register", file, "--wallet.name", name, "--wallet.path", wallets, "--create"),
        *("--stake", str(stake)),
    )


def test_stake_makes_a_validator_and_asking_again_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "chain.sqlite"
    assert chain("begin", file, "--block-seconds", "1", "--tempo", "10").exit_code == 0
    for _ in range(2):
        assert joined(file, "validator", 1_000).exit_code == 0
        assert joined(file, "miner").exit_code == 0
    neurons = shown(file)["neurons"]
    assert neurons[0]["hotkey"] == OWNER
    assert [n["permit"] for n in neurons] == [False, True, False]
    assert neurons[1]["stake"] == 1_000 * 10**9


def test_beginning_again_keeps_the_chain_and_refuses_other_rules(tmp_path: Path) -> None:
    file = tmp_path / "chain.sqlite"
    assert chain("begin", file, "--tempo", "10").exit_code == 0
    assert joined(file, "miner").exit_code == 0
    assert chain("begin", file, "--tempo", "10").exit_code == 0
    assert len(shown(file)["neurons"]) == 2
    refused = chain("begin", file, "--tempo", "11")
    assert refused.exit_code == 1
    assert "other rules" in refused.output


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    assert "arena chain begin" in chain("show", tmp_path / "none").output
    file = tmp_path / "chain.sqlite"
    chain("begin", file)
    assert "no SS58 address" in chain("register", file, "--hotkey", "5nobody").output
    unknown = chain("register", file, "--wallet.name", "x", "--wallet.path", tmp_path)
    assert unknown.exit_code == 1
    assert "--create" in unknown.output


async def test_a_chain_keeps_its_rules_for_whoever_opens_it_by_name(tmp_path: Path) -> None:
    file = tmp_path / "chain.sqlite"
    chain("begin", file, "--netuid", "7", "--block-seconds", "1", "--tempo", "10")
    async with open_chain(f"local-chain:{file}", 7) as opened:
        assert (await opened.subnet()).tempo == 10
