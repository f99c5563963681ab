"""Season and bank are folded once; a request reads what was appended since."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from arena.api.public_scores import ValidatorScore
from arena.api.public_variance import spread
from arena.api.public_views import Views, race_uuid, races_of, version_uuid
from arena.exceptions import SeasonError
from arena.journal import Entry, Event, MemoryJournal
from arena.season.following import SeasonFollower
from arena.season.record import record_of
from arena.season.state import STREAM, Void
from tests.unit.arena.api.world import World
from tests.unit.arena.season.driving import START, Driver


class CountingJournal(MemoryJournal):
    """Says from where it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.read_after: list[int] = []

    async def read(self, stream: str, *, after: int = 0) -> list[Entry]:
        self.read_after.append(after)
        return await super().read(stream, after=after)


async def test_a_follower_reads_only_what_is_new() -> None:
    journal, driver = CountingJournal(), Driver()
    follower = SeasonFollower(journal)
    await journal.append(STREAM, driver.events, after=0)
    begun = len(driver.events)
    assert (await follower.current()).entries == begun
    driver.open()
    driver.enter("v1")
    await journal.append(STREAM, driver.events[begun:], after=begun)
    loaded = await follower.current()
    assert loaded.season.waiting == driver.season.waiting
    assert (await follower.current()).entries == len(driver.events)
    assert journal.read_after == [0, begun, len(driver.events)]


async def test_after_an_entry_that_cannot_be_folded_it_begins_anew() -> None:
    journal, driver = CountingJournal(), Driver()
    await journal.append(STREAM, driver.events, after=0)
    follower = SeasonFollower(journal)
    await follower.current()
    broken = Event("race.unheard_of", START + timedelta(days=1), {})
    await journal.append(STREAM, [broken], after=len(driver.events))
    for _ in range(2):
        with pytest.raises(SeasonError):
            await follower.current()
    assert journal.read_after == [0, len(driver.events), 0]


async def test_a_draws_record_is_made_of_its_own_entries() -> None:
    journal, driver = CountingJournal(), Driver()
    first = driver.open()
    driver.enter("a")
    driver.race({"a": 6})
    second = driver.open()
    await journal.append(STREAM, driver.events, after=0)
    follower = SeasonFollower(journal)
    await follower.current()
    for race, count in ((first, 3), (second, 1)):
        places = follower.draws[race]
        assert len(places) == count
        own = [driver.events[place - 1] for place in places]
        assert record_of(own, race) == record_of(driver.events, race)


async def test_sums_are_kept_for_a_while_and_then_made_again(world: World) -> None:
    views, made = Views(world.services()), []

    async def make() -> int:
        made.append(1)
        return len(made)

    assert [await views.kept("k", make, 10.0) for _ in range(3)] == [1, 1, 1]
    assert await views.kept("other", make, 10.0) == 2
    world.clock.ahead = timedelta(seconds=11)
    assert await views.kept("k", make, 10.0) == 3


def test_races_are_counted_in_the_order_of_their_days() -> None:
    driver = Driver()
    driver.open()
    driver.settle()
    driver.close()  # nobody entered: void
    driver.open()
    driver.enter("a")
    driver.race({"a": 6})
    driver.open()
    found = races_of(driver.season)
    assert [(one.number, one.status) for one in found] == [
        (1, "void"),
        (2, "completed"),
        (3, "qualifying"),
    ]
    assert driver.season.voids[0].reason is Void.NO_QUALIFIER
    assert found[1].race_id == race_uuid(found[1].name) != found[2].race_id


def test_ids_that_are_no_uuid_have_one() -> None:
    assert version_uuid(str(UUID(int=5))) == UUID(int=5)
    assert version_uuid("v1") == version_uuid("v1") != version_uuid("v2")


def test_how_far_validators_are_apart() -> None:
    one, two = UUID(int=1), UUID(int=2)

    def score(version: UUID, validator: str, value: float | None) -> ValidatorScore:
        return ValidatorScore(UUID(int=9), validator, version, value, None)

    found = spread(
        UUID(int=3),
        4,
        [
            score(one, "a", 0.5),
            score(one, "b", 0.6),
            score(one, "c", None),  # not done: compared with nobody
            score(two, "a", 0.5),
            score(two, "b", 0.5),
        ],
    )
    assert (found.n_pairs, found.race_number) == (2, 4)
    assert found.mean_spread == pytest.approx(0.05)
    assert found.max_spread == pytest.approx(0.1)
    over = {bucket.threshold_pp: bucket.count for bucket in found.spread_buckets}
    assert (over[5.0], over[20.0]) == (1, 0)
    delta = {v.validator_hotkey: v.mean_delta_vs_peers for v in found.validators}
    assert delta == {"a": pytest.approx(-0.05), "b": pytest.approx(0.05)}
    assert spread(UUID(int=3), 1, []).spread_buckets == []
