"""The market as a world for rollouts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox.catalog.interface import Catalog
from scoring.titles import LexicalTitles
from tests.unit.sandbox.standin.market import market
from training.rollouts.collecting import rollout_world
from training.rollouts.rollout import RolloutWorld


@pytest.fixture(scope="package")
def goods(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with market(tmp_path_factory.mktemp("market")) as catalog:
        yield catalog


@pytest.fixture
async def world(goods: Catalog) -> AsyncIterator[RolloutWorld]:
    async with rollout_world(goods, LexicalTitles()) as opened:
        yield opened
