"""Sealed records come in whole, count once, and are refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from arena.api import intake
from arena.runs.ledger import Head
from arena.runs.record import EncodedRecord, RunRecord
from arena.runs.seal import SealedRecord
from arena.work.types import Lease, RunState
from judge.verdict import Gate
from tests.unit.arena import builders
from tests.unit.arena.api.world import GATE, Validator, World, frames

pytestmark = pytest.mark.database

PATH = "/v1/validator/records"


async def _send(
    client: httpx.AsyncClient, who: Validator, records: list[SealedRecord] | bytes
) -> httpx.Response:
    body = records if isinstance(records, bytes) else frames(records)
    return await client.post(PATH, content=body, headers=who.headers())


async def _claim(world: World, who: Validator) -> Lease:
    lease = await world.queue.claim(
        who.hotkey, capacity=4, now=world.clock(), lease=timedelta(seconds=60)
    )
    assert lease is not None
    return lease


async def test_records_of_a_held_run_are_stored_and_counted_once(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    lease = await _claim(world, alice)
    sealed = [alice.seal(world.record(evaluation, n).encode()) for n in (1, 2)]
    async with world.client() as client:
        for _ in range(2):  # the same again changes nothing
            answer = await _send(client, alice, sealed)
            assert answer.status_code == 200, answer.text
            assert answer.json()["counted"] == 2
        assert await world.rows("counted_records") == 2
        assert await world.rows("seals") == 2
    run = await world.queue.run(lease.run_id)
    assert (run.state, run.counted) == (RunState.RUNNING, 2)
    results = await world.queue.results(evaluation.evaluation_id)
    assert set(results.validators[0].records) == set(evaluation.problems)


async def test_a_batch_may_start_anywhere_in_a_spool(world: World) -> None:
    evaluation, alice = await world.open(3), world.validators[0]
    await _claim(world, alice)
    sealed = [alice.seal(world.record(evaluation, n).encode()) for n in (1, 2, 3)]
    async with world.client() as client:
        for batch in (sealed[1:2], sealed[2:], sealed):
            assert (await _send(client, alice, batch)).status_code == 200
    assert await world.rows("counted_records") == 3


async def test_open_runs_are_kept_and_do_not_count(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    spoilt = replace(
        world.record(evaluation, 1, gate=None),
        failure=builders.HOST_FAULT,
        outcome=None,
        axis=None,
        run_id="spoilt",
    )
    again = alice.seal(spoilt.encode()), alice.seal(world.record(evaluation, 1).encode())
    async with world.client() as client:
        answer = (await _send(client, alice, list(again))).json()
    assert [one["reason"] for one in answer["records"]] == ["OPEN", None]
    assert answer["counted"] == 1


async def test_a_later_verdict_is_stored_beside_its_run(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    run = world.record(evaluation, 1, gate=None)
    verdict = builders.verdict_record(run, GATE)
    async with world.client() as client:
        for record in (run.encode(), verdict.encode()):
            answer = await _send(client, alice, [alice.seal(record)])
            assert answer.status_code == 200, answer.text
        higher = builders.verdict_record(run, Gate.PASSED)
        refused = await _send(client, alice, [alice.seal(higher.encode())])
        assert refused.status_code == 400
        bob = world.validators[1]
        foreign = await _send(client, bob, [bob.seal(verdict.encode())])
        assert foreign.json()["error_code"] == "NOT_RUN_OWNER"
    assert await world.rows("verdicts") == 1


async def test_a_verdict_may_come_in_the_batch_of_its_run(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    run = world.record(evaluation, 1, gate=None)
    both = [run.encode(), builders.verdict_record(run, GATE).encode()]
    async with world.client() as client:
        answer = await _send(client, alice, [alice.seal(one) for one in both])
    assert [one["counted"] for one in answer.json()["records"]] == [True, False]


async def test_a_lost_run_leaves_no_hole_in_the_chain_and_counts_when_claimed_again(
    world: World,
) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    first, second = (alice.seal(world.record(evaluation, n).encode()) for n in (1, 2))
    async with world.client() as client:
        assert (await _send(client, alice, [first])).json()["counted"] == 1
        world.clock.ahead = timedelta(seconds=55)
        assert (await _send(client, alice, [second])).json()["counted"] == 1
        third = alice.seal(world.record(evaluation, 1, "other").encode())
        answer = await _send(client, alice, [third])
        assert answer.json()["records"][0]["reason"] == "RECORD_CONFLICT"
    assert await world.rows("seals") == 3
    assert await world.rows("counted_records") == 2


async def test_an_expired_lease_stores_and_does_not_count(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await world.queue.claim(
        alice.hotkey, capacity=1, now=world.clock(), lease=timedelta(milliseconds=1)
    )
    sealed = alice.seal(world.record(evaluation, 1).encode())
    async with world.client() as client:
        answer = await _send(client, alice, [sealed])
        assert answer.json()["records"][0]["reason"] == "LEASE_EXPIRED"
        assert await world.rows("counted_records") == 0
        await _claim(world, alice)
        assert (await _send(client, alice, [sealed])).json()["counted"] == 1
    assert await world.rows("seals") == 1


Change = Callable[[RunRecord], RunRecord]


def _outcome(**changes: Any) -> Change:
    def change(record: RunRecord) -> RunRecord:
        assert record.outcome is not None
        return replace(record, outcome={**record.outcome, **changes})

    return change


def _axes(value: Any) -> Change:
    def change(record: RunRecord) -> RunRecord:
        assert isinstance(record.outcome, dict)
        axes = record.outcome["axes"]
        assert isinstance(axes, dict)
        return replace(record, outcome={**record.outcome, "axes": {**axes, "price": value}})

    return change


LIES: dict[str, tuple[Change, str]] = {
    "score above 1": (lambda r: replace(r, final_score=1.5), "INVALID_RECORD"),
    "negative score": (lambda r: replace(r, final_score=-0.1), "INVALID_RECORD"),
    "NaN score": (lambda r: replace(r, final_score=float("nan")), "INVALID_RECORD"),
    "other coefficient": (lambda r: replace(r, coefficient=1.0), "INVALID_RECORD"),
    "score without verdict": (lambda r: replace(r, verdict=None), "INVALID_RECORD"),
    "verdict above the facts": (
        lambda r: replace(r, **builders.judged(Gate.REFERENCE, success=True)),
        "INVALID_RECORD",
    ),
    "share above 1": (_axes(1.01), "INVALID_RECORD"),
    "NaN share": (_axes(float("nan")), "INVALID_RECORD"),
    "share of another kind": (_axes(True), "INVALID_RECORD"),
    "success against its reason": (_outcome(success=True, reason="price"), "INVALID_RECORD"),
    "success as text": (_outcome(success="yes"), "INVALID_RECORD"),
    "upstream score above 1": (_outcome(upstream_scores={"gt": 2}), "INVALID_RECORD"),
    "closed without an outcome": (lambda r: replace(r, outcome=None), "INVALID_RECORD"),
    "other phase": (lambda r: replace(r, phase="race"), "INVALID_RECORD"),
    "other file": (
        lambda r: replace(r, agent=replace(r.agent, source_hash="ab" * 32)),
        "INVALID_RECORD",
    ),
    "other version": (
        lambda r: replace(r, agent=replace(r.agent, label="x", version="x")),
        "INVALID_RECORD",
    ),
    "problem of another evaluation": (
        lambda r: replace(r, problem=replace(r.problem, problem_id="../../etc/passwd")),
        "INVALID_PROBLEM_ID",
    ),
    "other content of the problem": (
        lambda r: replace(r, problem=replace(r.problem, content_hash="ab" * 32)),
        "INVALID_RECORD",
    ),
    "other pool": (
        lambda r: replace(r, problem=replace(r.problem, pool="bank:held_out")),
        "INVALID_RECORD",
    ),
    "SQL for a run id": (
        lambda r: replace(r, run_id="x'; DROP TABLE records; --"),
        "INVALID_RECORD",
    ),
    "NUL in a run id": (lambda r: replace(r, run_id="a\0b"), "INVALID_RECORD"),
    "no evaluation": (lambda r: replace(r, race_id="race"), "INVALID_RECORD"),
    "unknown evaluation": (
        lambda r: replace(r, race_id="00000000-0000-4000-8000-000000000000"),
        "EVAL_RUN_NOT_FOUND",
    ),
    "endless attempts": (lambda r: replace(r, attempt=10**9), "INVALID_RECORD"),
    "negative time": (
        lambda r: replace(r, timing=replace(r.timing, wall_s=-1.0)),
        "INVALID_RECORD",
    ),
    "a time that is none": (
        lambda r: replace(r, timing=replace(r.timing, started_at="yesterday")),
        "INVALID_RECORD",
    ),
    "a time before all others": (
        lambda r: replace(r, timing=replace(r.timing, started_at="0001-01-01T00:00:00+14:00")),
        "INVALID_RECORD",
    ),
    "a time after all others": (
        lambda r: replace(r, timing=replace(r.timing, finished_at="9999-12-31T23:59:59-14:00")),
        "INVALID_RECORD",
    ),
    "a ratio that is text": (lambda r: _with_ratio(r, "x"), "INVALID_RECORD"),
    "a ratio beyond 1": (lambda r: _with_ratio(r, 5.0), "INVALID_RECORD"),
}


def _with_ratio(record: RunRecord, ratio: Any) -> RunRecord:
    return replace(record, axis={"axis": "A", "reasons": [], "agentic_ratio": ratio})


async def _refused(
    world: World, client: httpx.AsyncClient, who: Validator, body: list[SealedRecord] | bytes
) -> dict[str, Any]:
    """A refusal, after which nothing is stored that was not before."""
    before = await world.stored()
    answer = await _send(client, who, body)
    assert 400 <= answer.status_code < 500, answer.text
    assert await world.stored() == before
    return dict(answer.json())


async def test_lies_are_refused_by_name_and_nothing_is_stored(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    honest = world.record(evaluation, 1)
    async with world.client() as client:
        for lie, (change, code) in LIES.items():
            head = alice.head
            said = await _refused(world, client, alice, [alice.seal(change(honest).encode())])
            assert (lie, said["error_code"], said["index"]) == (lie, code, 0)
            alice.head = head
        assert (await _send(client, alice, [alice.seal(honest.encode())])).status_code == 200


async def test_a_batch_with_one_bad_record_is_refused_whole(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    good = alice.seal(world.record(evaluation, 1).encode())
    bad = alice.seal(replace(world.record(evaluation, 2), final_score=0.9).encode())
    async with world.client() as client:
        said = await _refused(world, client, alice, [good, bad])
    assert (said["index"], said["finding"]) == (1, "score.final")


async def test_seals_must_be_the_callers_own(world: World) -> None:
    evaluation = await world.open()
    alice, bob = world.validators
    await _claim(world, alice)
    await _claim(world, bob)
    record = world.record(evaluation, 1).encode()
    sealed = alice.seal(record)
    async with world.client() as client:
        foreign = await _refused(world, client, bob, [sealed])
        assert foreign["finding"] == "seal.unexpected_validator"
        signature = bytes(64)
        forged = SealedRecord(record, replace(sealed.sealed, signature=signature))
        assert (await _refused(world, client, alice, [forged]))["finding"] == "seal.signature"
        changed = SealedRecord(EncodedRecord(record.content + b" "), sealed.sealed)
        assert (await _refused(world, client, alice, [changed]))["error_code"] == "INVALID_RECORD"
        late = alice.seal(record, at=world.clock() + timedelta(days=400))
        assert (await _refused(world, client, alice, [late]))["error_code"] == "INVALID_SEAL"


async def test_a_record_that_is_not_canonical_is_refused(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    content = world.record(evaluation, 1).encode().content
    spaced = EncodedRecord(content.replace(b'"attempt":1', b'"attempt": 1'))
    async with world.client() as client:
        said = await _refused(world, client, alice, [alice.seal(spaced)])
    assert said["finding"] == "record.not_canonical"


async def test_a_forked_chain_is_refused(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    head = alice.head
    async with world.client() as client:
        await _send(client, alice, [alice.seal(world.record(evaluation, 1).encode())])
        alice.head = head
        fork = alice.seal(world.record(evaluation, 2).encode())
        said = await _refused(world, client, alice, [fork])
    assert said["error_code"] == "SEAL_CHAIN_FORK"


async def test_a_run_has_one_record(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    record = world.record(evaluation, 1)
    async with world.client() as client:
        await _send(client, alice, [alice.seal(record.encode())])
        other = replace(record, log_tail="other")
        said = await _refused(world, client, alice, [alice.seal(other.encode())])
    assert said["error_code"] == "RECORD_CONFLICT"


async def test_who_never_had_a_run_of_it_stores_nothing(world: World) -> None:
    evaluation = await world.open()
    alice, bob = world.validators
    await _claim(world, alice)
    async with world.client() as client:
        sealed = [bob.seal(world.record(evaluation, 1, "bob").encode())]
        said = await _refused(world, client, bob, sealed)
    assert said["error_code"] == "NOT_RUN_OWNER"


async def test_of_uploads_that_come_at_once_each_has_its_own_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_LANES", 1)  # all but the first wait, and share a transaction
    evaluation = await world.open(4)
    alice, bob = world.validators
    await _claim(world, alice)
    await _claim(world, bob)
    good = [alice.seal(world.record(evaluation, n).encode()) for n in (1, 2, 3)]
    bobs = [bob.seal(world.record(evaluation, n, "bob").encode()) for n in (1, 2)]
    alice.head = Head.of(good[0].sealed)
    fork = alice.seal(world.record(evaluation, 4).encode())
    async with world.client() as client:
        await _send(client, alice, good)
        batches = [(alice, fork), (bob, bobs[0]), (alice, good[1]), (bob, bobs[1]), (alice, fork)]
        answers = await asyncio.gather(*(_send(client, who, [one]) for who, one in batches))
    assert [answer.status_code for answer in answers] == [409, 200, 200, 200, 409]
    assert {answers[i].json()["error_code"] for i in (0, 4)} == {"SEAL_CHAIN_FORK"}
    assert [answers[i].json()["counted"] for i in (1, 2, 3)] == [1, 1, 1]
    assert await world.rows("records") == await world.rows("counted_records") == 5


async def test_of_two_that_send_one_run_at_once_one_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_LANES", 1)
    evaluation = await world.open()
    alice, bob = world.validators
    await _claim(world, alice)
    await _claim(world, bob)
    same = [
        (who, who.seal(replace(world.record(evaluation, 1), log_tail=who.hotkey).encode()))
        for who in (alice, bob)
    ]
    async with world.client() as client:
        first = _send(client, alice, [alice.seal(world.record(evaluation, 2).encode())])
        answers = await asyncio.gather(first, *(_send(client, who, [one]) for who, one in same))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 409]
    assert await world.rows("runs") == await world.rows("records") == 2


async def test_bodies_that_are_no_batch_are_refused(world: World) -> None:
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    whole = frames([alice.seal(world.record(evaluation, 1).encode())])
    async with world.client() as client:
        for body in (b"", b"{}", whole[:-5], whole + b"x", whole * 65):
            said = await _refused(world, client, alice, body)
            assert said["error_code"] in ("INVALID_RECORD", "FILE_TOO_LARGE"), body[:20]


async def test_only_the_accepted_conditions_count(world: World) -> None:
    world.settings = world.settings.model_copy(update={"scoring_versions": frozenset({"rules-9"})})
    evaluation, alice = await world.open(), world.validators[0]
    await _claim(world, alice)
    async with world.client() as client:
        sealed = [alice.seal(world.record(evaluation, 1).encode())]
        said = await _refused(world, client, alice, sealed)
    assert (said["error_code"], said["finding"]) == ("UNSUPPORTED_CONDITIONS", "scoring_version")
