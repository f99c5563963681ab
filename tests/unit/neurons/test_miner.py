"""`python -m neurons.miner`: who is not registered is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from arena.settings import ArenaSettings
from arena.wallets import open_hotkey
from neurons.exceptions import NotRegisteredError
from neurons.miner import app, check_registered


async def test_a_hotkey_that_is_not_registered_is_told_so(tmp_path: Path) -> None:
    chain = f"local-chain:{tmp_path / 'chain.json'}"
    address = open_hotkey(ArenaSettings(data_dir=tmp_path)).signer.address
    with pytest.raises(NotRegisteredError, match=f"{address} is not registered on subnet 15"):
        await check_registered(chain, 15, address)


async def test_a_chain_that_is_away_is_no_reason_to_stay_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = tmp_path / "chain.json"
    chain.write_text("not a chain")
    await check_registered(f"local-chain:{chain}", 15, "5F")
    assert "not checked on chain" in capsys.readouterr().err


def test_an_arena_has_to_be_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [str(tmp_path)], env={"ARENA_URL": ""})
    assert done.exit_code == 1
    assert "--arena.url" in done.stderr
