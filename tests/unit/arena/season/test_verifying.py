"""A draw can be made again by anyone, and whatever was tampered with is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from arena.exceptions import ArenaError, DrawError
from arena.races.cli import app
from arena.season.beacon import drand_ticket, drand_value, quicknet_time, standin_value
from arena.season.commitment import Commitment
from arena.season.draw import draw, draw_seed, secret_hash
from arena.season.listing import publish
from arena.season.record import DrawRecord, Reveal, record_of
from arena.season.verifying import verify
from scoring.types import Bucket
from tests.unit.arena.season.driving import Driver, pool

ROUND = 657413
SIGNATURE = (
    "b713718a38ae728dfd477991af2822e08d2f305e47718cef9f7848ce4050e7be"
    "41076862b98fad56e91a6b85b89cd97b"
)
"""A round of quicknet, as its public servers give it."""
SECRET = "5a" * 32


def drand_record() -> dict[str, Any]:
    """A race that the real round decided."""
    closes_at = quicknet_time(ROUND) - timedelta(seconds=60)
    listing, openings = publish(pool(), b"k" * 32)
    quota = dict.fromkeys(Bucket, 2)
    commitment = Commitment(
        race_id="race-2023-09-15",
        committed_at=closes_at - timedelta(hours=20),
        closes_at=closes_at,
        secret_hash=secret_hash("race-2023-09-15", SECRET),
        ticket=drand_ticket(closes_at, timedelta(seconds=60)),
        beacon_delay=60,
        quota=quota,
        listing_hash=listing.hash,
        listing_size=len(listing),
    )
    beacon = drand_value(ROUND, SIGNATURE)
    seed = draw_seed(commitment.race_id, SECRET, beacon.value)
    drawn = draw(listing.rows, quota, seed)
    record = DrawRecord(
        commitment,
        listing,
        Reveal(SECRET, beacon, seed, drawn),
        tuple(openings[leaf] for leaf in drawn),
    )
    value: dict[str, Any] = json.loads(json.dumps(record.to_json()))
    return value


def wrong(value: dict[str, Any], published: str | None = None) -> set[str]:
    return {check.name for check in verify(DrawRecord.from_json(value), published).wrong}


def test_a_true_record_holds_with_the_beacons_signature() -> None:
    value = drand_record()
    record = DrawRecord.from_json(value)
    result = verify(record, record.commitment.hash)
    assert result.holds
    assert [check.name for check in result.checks if check.holds is None] == []
    assert record.to_json() == value


def test_what_cannot_be_checked_is_said() -> None:
    result = verify(DrawRecord.from_json(drand_record()))
    assert result.holds
    assert [check.name for check in result.checks if check.holds is None] == ["commitment"]


def another_secret(value: dict[str, Any]) -> None:
    value["reveal"]["secret"] = "5b" * 32


def another_secret_and_its_draw(value: dict[str, Any]) -> None:
    """The operator tries secrets until a draw pleases, and is consistent about it."""
    record = DrawRecord.from_json(value)
    secret = "5b" * 32
    seed = draw_seed(record.commitment.race_id, secret, value["reveal"]["beacon"]["value"])
    drawn = draw(record.listing.rows, record.commitment.quota, seed)
    value["reveal"] |= {"secret": secret, "seed": seed, "drawn": list(drawn)}
    value["opened"] = []


def another_round(value: dict[str, Any]) -> None:
    beacon = value["reveal"]["beacon"]
    beacon["number"] = ROUND + 1
    beacon["at"] = quicknet_time(ROUND + 1).isoformat()


def another_beacon(value: dict[str, Any]) -> None:
    value["reveal"]["beacon"] = standin_value(ROUND, "mine").to_json()


def made_up_randomness(value: dict[str, Any]) -> None:
    value["reveal"]["beacon"]["value"] = "00" * 32


def made_up_signature(value: dict[str, Any]) -> None:
    """Consistent in itself: the randomness is the hash of a signature nobody made."""
    forged = SIGNATURE[:-2] + "00"
    made = drand_value(ROUND, forged)
    value["reveal"]["beacon"] = made.to_json()


def longer_signature(value: dict[str, Any]) -> None:
    """The same point with bytes behind it would give another randomness."""
    value["reveal"]["beacon"]["signature"] = SIGNATURE + "00"


def pool_changed(value: dict[str, Any]) -> None:
    value["listing"][0][2] = "another-cluster"


def problem_taken_out(value: dict[str, Any]) -> None:
    drawn = value["reveal"]["drawn"]
    value["listing"].remove(next(row for row in value["listing"] if row[0] not in drawn))


def quota_missed(value: dict[str, Any]) -> None:
    value["reveal"]["drawn"].pop()
    value["opened"].pop()


def quota_changed(value: dict[str, Any]) -> None:
    value["commitment"]["quota"]["shop"] = 1


def chosen_problem(value: dict[str, Any]) -> None:
    drawn = value["reveal"]["drawn"]
    bucket = {row[0]: row[1] for row in value["listing"]}
    spare = next(
        row[0] for row in value["listing"] if row[0] not in drawn and row[1] == bucket[drawn[0]]
    )
    drawn[0] = spare


def other_seed(value: dict[str, Any]) -> None:
    value["reveal"]["seed"] = "00" * 32


def other_problem_opened(value: dict[str, Any]) -> None:
    value["opened"][0]["problem_id"] = "an easier one"


def committed_too_late(value: dict[str, Any]) -> None:
    value["commitment"]["committed_at"] = quicknet_time(ROUND + 5).isoformat()


def chosen_round(value: dict[str, Any]) -> None:
    """The commitment itself names a round that suits."""
    value["commitment"]["beacon"]["number"] = ROUND - 100


TAMPERING: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (another_secret, "secret"),
    (another_secret_and_its_draw, "secret"),
    (another_round, "beacon"),
    (another_beacon, "beacon"),
    (made_up_randomness, "beacon"),
    (made_up_signature, "beacon"),
    (longer_signature, "beacon"),
    (pool_changed, "pool"),
    (problem_taken_out, "pool"),
    (quota_missed, "quota"),
    (quota_changed, "commitment"),
    (chosen_problem, "draw"),
    (other_seed, "seed"),
    (other_problem_opened, "problems"),
    (committed_too_late, "time"),
    (chosen_round, "beacon chosen"),
]


@pytest.mark.parametrize(("tamper", "name"), TAMPERING, ids=[t.__name__ for t, _ in TAMPERING])
def test_tampering_is_named(tamper: Callable[[dict[str, Any]], None], name: str) -> None:
    value = drand_record()
    published = DrawRecord.from_json(value).commitment.hash
    tamper(value)
    assert name in wrong(value, published)


def test_a_pool_swapped_together_with_its_commitment_needs_the_published_hash() -> None:
    value = drand_record()
    published = DrawRecord.from_json(value).commitment.hash
    other, _ = publish(pool(prefix="q"), b"k" * 32)
    value["listing"] = other.to_json()
    value["commitment"]["listing_hash"] = other.hash
    assert "commitment" in wrong(value, published)


def test_the_record_of_a_race_comes_from_the_journal_as_far_as_it_is_public() -> None:
    driver = Driver()
    race_id = driver.open()
    driver.enter("v1")
    before = record_of(driver.events, race_id)
    assert before.reveal is None
    assert verify(before).holds
    driver.close()
    driver.draw()
    during = record_of(driver.events, race_id)
    assert during.reveal is not None
    assert during.opened == ()
    for validator in driver.season.validators:
        driver.report("v1", validator, 1)
    driver.settle()
    after = record_of(driver.events, race_id)
    assert {o.problem_id for o in after.opened} <= {row.name for row in pool()}
    result = verify(after, before.commitment.hash)
    assert result.holds
    # A stand-in's beacon proves nothing, and that is said.
    assert [c.name for c in result.checks if c.holds is None] == ["beacon signature"]
    with pytest.raises(DrawError) as error:
        record_of(driver.events, "race-1")
    assert error.value.code == "draw.no_such_race"


def test_a_listing_tells_nothing_of_its_problems_and_is_another_one_for_every_race() -> None:
    one, openings = publish(pool(), b"a" * 32)
    two, _ = publish(pool(), b"b" * 32)
    names = {row.name for row in one.rows} | {row.cluster for row in one.rows}
    assert names.isdisjoint({row.name for row in two.rows} | {row.cluster for row in two.rows})
    assert names.isdisjoint({p.name for p in pool()} | {p.cluster for p in pool()})
    assert {o.problem_id for o in openings.values()} == {p.name for p in pool()}
    assert publish(reversed(pool()), b"a" * 32)[0] == one


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value, the value itself first."""
    if isinstance(value, dict):
        return [path, *(p for key, inner in value.items() for p in paths(inner, (*path, key)))]
    if isinstance(value, list):
        return [path, *(p for i, inner in enumerate(value) for p in paths(inner, (*path, i)))]
    return [path]


PATHS = paths(drand_record())


@settings(max_examples=500)
@given(st.sampled_from(PATHS[1:]), JSON)
def test_a_record_of_any_form_is_refused_or_judged(path: tuple[Any, ...], put: Any) -> None:
    value = drand_record()
    place: Any = value
    for key in path[:-1]:
        place = place[key]
    same = place[path[-1]] == put
    place[path[-1]] = put
    code: str | None = None
    try:
        record = DrawRecord.from_json(value)
    except ArenaError as error:
        code = error.code
    else:
        published = DrawRecord.from_json(drand_record()).commitment.hash
        result = verify(record, published)
        assert same or not result.holds or put in ([], None)
    assert code is None or code.startswith("draw.")


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    value = drand_record()
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(value))
    result = CliRunner().invoke(app, ["verify", str(good), "--json", "-"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["holds"] is True
    pool_changed(value)
    bad.write_text(json.dumps(value))
    result = CliRunner().invoke(app, ["verify", str(bad), "--json", "-"])
    assert result.exit_code != 0
    assert isinstance(result.exception, ArenaError)
    assert "pool" in result.exception.message
    bad.write_text("{")
    result = CliRunner().invoke(app, ["verify", str(bad)])
    assert isinstance(result.exception, DrawError)
    for arguments in ([], [str(good), "--race", "race-1"]):
        result = CliRunner().invoke(app, ["verify", *arguments])
        assert isinstance(result.exception, ArenaError)
