"""What the arena answers a validator is checked, field by field."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import httpx
import pytest
from oro_sdk.models import ProblemStatus

from arena.client.exceptions import AnswerError
from arena.client.validator import HostLoad, update
from arena.runs.problems import problem_content
from tests.unit.arena.api.world import problem
from tests.unit.neurons.validating.wire import NOW, Wire, client_of

RUN = UUID("00000000-0000-0000-0000-000000000001")
CLAIM: dict[str, Any] = {
    "eval_run_id": str(RUN),
    "agent_version_id": "00000000-0000-0000-0000-000000000002",
    "suite_id": 7,
    "lease_expires_at": NOW.isoformat(),
    "code_download_url": "http://arena.test/v1/code/x?signature=SECRET-LINK",
    "evaluation_id": "00000000-0000-0000-0000-000000000003",
    "phase": "qualifying",
    "agent_name": "a" * 5_000,
    "source_sha256": "ab" * 32,
    "resumed": True,
}


async def test_a_claim_is_read_and_says_what_is_worked_on() -> None:
    wire = Wire(claim=httpx.Response(200, json=CLAIM))
    claim = await client_of(wire).claim([RUN], HostLoad(disk_pct=50.0))
    assert claim is not None
    assert (claim.run_id, claim.resumed, claim.credential, claim.artefact) == (
        RUN,
        True,
        None,
        None,
    )
    assert len(claim.agent_name) == 100
    assert "SECRET-LINK" not in repr(claim)
    sent = json.loads(wire.asked[0].content)
    assert sent == {"working": [str(RUN)], "disk_pct": 50.0}


async def test_no_work_is_none() -> None:
    assert await client_of(Wire(claim=httpx.Response(204))).claim([]) is None


@pytest.mark.parametrize(
    "grant",
    [
        {"provider": "chutes", "token": "SECRET", "base_url": "https://llm.chutes.ai/v1"},
        {
            "provider": "chutes",
            "access_token": "SECRET",
            "base_url": "https://llm.chutes.ai/v1",
            "expires_at": NOW.isoformat(),
        },
    ],
)
async def test_a_credential_is_kept_where_it_is_not_printed(grant: dict[str, Any]) -> None:
    wire = Wire(claim=httpx.Response(200, json={**CLAIM, "inference_token": grant}))
    claim = await client_of(wire).claim([])
    assert claim is not None
    assert claim.credential is not None
    assert claim.credential.token.get_secret_value() == "SECRET"
    assert claim.credential.base_url == "https://llm.chutes.ai/v1"
    assert "SECRET" not in f"{claim!r}{claim}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("phase", "../x"),
        ("source_sha256", "AB" * 32),
        ("source_sha256", None),
        ("evaluation_id", "../../etc"),
        ("lease_expires_at", "2026-11-21T12:00:00"),
        ("lease_expires_at", "soon"),
        ("suite_id", "x"),
    ],
)
async def test_a_claim_that_is_none_is_refused(field: str, value: object) -> None:
    wire = Wire(claim=httpx.Response(200, json={**CLAIM, field: value}))
    with pytest.raises(AnswerError):
        await client_of(wire).claim([])


def _problems(*metadata: Any) -> httpx.Response:
    listed = [
        {"problem_id": problem(n).problem_id, "suite_id": 7, "metadata": value}
        for n, value in enumerate(metadata, start=1)
    ]
    return httpx.Response(200, json={"problems": listed})


async def test_problems_are_read_as_they_were_stored() -> None:
    stored = [problem(1), problem(2)]
    wire = Wire(problems=_problems(*(json.loads(problem_content(one)) for one in stored)))
    found = await client_of(wire).problems(RUN)
    assert [problem_content(one) for one in found] == [problem_content(one) for one in stored]


@pytest.mark.parametrize("broken", ["none", "other", "twice", "empty", "list"])
async def test_problems_that_are_none_are_refused(broken: str) -> None:
    first = json.loads(problem_content(problem(1)))
    answers = {
        "none": _problems(),
        "other": _problems(json.loads(problem_content(problem(2)))),
        "twice": httpx.Response(
            200,
            json={
                "problems": [{"problem_id": first["problem_id"], "suite_id": 7, "metadata": first}]
                * 2
            },
        ),
        "empty": _problems({}),
        "list": httpx.Response(200, json=[]),
    }
    with pytest.raises(AnswerError):
        await client_of(Wire(problems=answers[broken])).problems(RUN)


@pytest.mark.parametrize("body", [{}, {"records": 7}, {"records": [7]}, {"records": [{}]}, []])
async def test_what_became_of_records_must_be_said(body: Any) -> None:
    with pytest.raises(AnswerError):
        await client_of(Wire(records=httpx.Response(200, json=body))).send_records(b"x")


async def test_progress_and_endings_say_what_is_meant() -> None:
    done = {
        "eval_run_id": str(RUN),
        "status": "SUCCESS",
        "work_item": {
            "included_success_count": 1, "required_successes": 1, "is_closed": True,
        },
        "agent_version_became_eligible": False,
    }  # fmt: skip
    wire = Wire(
        progress=httpx.Response(200, json={"accepted": True}),
        complete=httpx.Response(200, json=done),
    )
    client = client_of(wire)
    await client.progress(RUN, [update(problem(1).problem_id, ProblemStatus.SUCCESS, 0.5)])
    await client.complete(RUN, 0.25, {"problems": 4})
    await client.fail(RUN, "x" * 9_000)
    progress, success, failure = (json.loads(request.content) for request in wire.asked)
    assert progress["problems"][0]["score"] == 0.5
    assert (success["terminal_status"], success["validator_score"]) == ("SUCCESS", 0.25)
    assert success["score_components"] == {"problems": 4}
    assert failure["terminal_status"] == "FAILED"
    assert len(failure["failure_reason"]) == 2_000
