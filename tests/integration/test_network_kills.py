"""Kill -9 of any part of the network in the middle of a race changes nothing of its result."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena.db.embedded import EmbeddedPostgres
from neurons.demo.network import Network
from tests.integration.network_race import AGENTS, RULES, VALIDATORS, Ran, race
from tests.isolations import open_or_skip

pytestmark = [pytest.mark.isolation, pytest.mark.database]


async def _the_api(network: Network) -> None:
    network.members["arena"].kill()
    network.start_arena("arena", "--no-conductor")


async def _the_calendar(network: Network) -> None:
    network.members["calendar"].kill()
    rules = str(network.home / "rules.json")
    network.start_arena("calendar", "--conductor-only", ARENA_CONDUCTOR_RULES=rules)


async def _a_validator(network: Network) -> None:
    network.members[VALIDATORS[0]].kill()
    network.start_validator(VALIDATORS[0])


async def _postgres(network: Network) -> None:
    pid = int((network.data / "postgres" / "postmaster.pid").read_text().split()[0])
    os.kill(pid, signal.SIGKILL)
    while _runs(pid):  # noqa: ASYNC110 - a kill is not over at once
        await asyncio.sleep(0.02)
    # As the service manager that watches it would.
    await asyncio.to_thread(EmbeddedPostgres(network.data).start)


def _runs(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.fixture(scope="module")
def homes() -> Iterator[Path]:
    """Short paths: a database's socket lies in them."""
    directory = Path(tempfile.mkdtemp(prefix="net-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed(homes: Path) -> Ran:
    return asyncio.run(race(_home(homes, "undisturbed"), None))


def _home(homes: Path, name: str) -> Path:
    home = homes / name
    home.mkdir()
    return home


async def test_an_undisturbed_race_stores_one_outcome_of_every_problem(undisturbed: Ran) -> None:
    await (await open_or_skip("bubblewrap")).close()
    assert undisturbed.records == [1] * undisturbed.expected
    assert [name for name, _, _ in undisturbed.standings] == ["react", "pipeline"]
    assert undisturbed.expected == RULES.drawn * len(AGENTS) * len(VALIDATORS)


@pytest.mark.parametrize("kill", [_the_api, _the_calendar, _a_validator, _postgres])
async def test_a_part_that_is_killed_in_the_middle_changes_no_result(
    kill: Any, undisturbed: Ran, homes: Path
) -> None:
    ran = await race(_home(homes, kill.__name__.strip("_")), kill)
    assert ran == undisturbed
