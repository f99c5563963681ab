"""An owner reads why its agent failed; nobody reads a problem's text before its time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena.api.own_logs import CountedRecord, own_log
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.exceptions import ErrorInfo, Fault
from arena.journal import Event
from arena.problems.bank import OPENED, Bank
from arena.problems.bank import STREAM as BANK
from arena.problems.release import TextWithheld, text_withheld
from arena.runs.record import RunRecord
from arena.season.release import own_text_withheld
from arena.submissions.store import AgentVersion
from arena.work.types import Evaluation
from tests.integration.past_season import PastSeason, imported
from tests.unit.arena import builders
from tests.unit.arena.api.world import GATE, Validator, World, frames, problem
from tests.unit.arena.season.driving import Driver

OPEN, HELD_OUT, RETIRED, SUITE = (problem(n) for n in (1, 2, 3, 4))
SECRET = {n: f"find {n}\x1b[31m SECRET-OF-{n}" for n in (1, 2, 3, 4)}
"""What the agent prints of each problem, and what its exception says."""


class Played:
    """An agent of the miner's, run by Alice on problems of four pools; each failed."""

    def __init__(self, world: World, client: httpx.AsyncClient) -> None:
        self.world, self.client = world, client
        self.season = PastSeason(world, datetime.now(UTC) - timedelta(days=3))
        self.version: AgentVersion
        self.evaluation: Evaluation
        self.run: UUID

    @property
    def logs(self) -> str:
        return f"/v1/miner/agent-versions/{self.version.version_id}/logs"

    async def begin(self) -> None:
        season, world = self.season, self.world
        await season.begin()
        pools = {"bank:open": [OPEN], "bank:held_out": [HELD_OUT, RETIRED], "suite:v1": [SUITE]}
        await season.import_problems(pools)
        await season.retire(RETIRED)
        self.version = await season.submit(world.miner.hotkey, "Mine")
        self.evaluation = await season.evaluation(self.version, "race-x", problems=4)
        alice = world.validators[0]
        claimed = await self.ask(alice, "POST", "/v1/validator/work/claim")
        self.run = UUID(claimed.json()["eval_run_id"])
        records = [self.record(n) for n in (1, 2, 3, 4)]
        # The last one's verdict comes later, in a record of its own.
        bare = replace(records[-1], verdict=None, coefficient=None, final_score=None)
        later = builders.verdict_record(bare, GATE)
        made = [*(one.encode() for one in (*records[:-1], bare)), later.encode()]
        sealed = [alice.seal(one) for one in made]
        sent = await self.ask(alice, "POST", "/v1/validator/records", content=frames(sealed))
        assert sent.json()["counted"] == 4, sent.text
        await self._leave_files(alice)

    def record(self, number: int) -> RunRecord:
        made = self.season.record(self.version, self.evaluation, number, "alice")
        failed = builders.record(
            problem(number),
            failure=ErrorInfo("agent.crashed", Fault.AGENT, f"ValueError: {SECRET[number]}"),
            gate=GATE,
        )
        return replace(
            made,
            outcome=failed.outcome,
            failure=failed.failure,
            final_score=failed.final_score,
            notes=(ErrorInfo("agent.noted", Fault.AGENT, SECRET[number]),),
            log_tail=f"looking at {SECRET[number]}\0\ud800\n",
        )

    async def _leave_files(self, alice: Validator) -> None:
        """As a validator does: a file of logs with each problem."""
        for number in (1, 2, 3, 4):
            body = json.dumps({"log_tail": SECRET[number]}).encode()
            asked = {
                "eval_run_id": str(self.run),
                "problem_id": problem(number).problem_id,
                "content_length": len(body),
                "content_type": "application/json",
            }
            link = await self.ask(alice, "POST", "/v1/validator/uploads/presign", json=asked)
            headers = {"content-type": "application/json"}
            url = link.json()["upload_url"]
            assert (await self.client.put(url, content=body, headers=headers)).status_code == 204

    async def end(self) -> None:
        path = f"/v1/validator/evaluation-runs/{self.run}/complete"
        body = {"terminal_status": "SUCCESS"}
        done = await self.ask(self.world.validators[0], "POST", path, json=body)
        assert done.json()["work_item"]["is_closed"], done.text

    async def open_held_out(self) -> None:
        data: Any = {"problems": [HELD_OUT.problem_id], "reason": "raced"}
        journal = self.season.journal
        after = len(await journal.read(BANK))
        await journal.append(BANK, [Event(OPENED, self.season.now, data)], after=after)

    async def ask(
        self, who: Validator | None, method: str, path: str, **more: Any
    ) -> httpx.Response:
        headers = {} if who is None else who.headers()
        return await self.client.request(method, path, headers=headers, **more)

    async def link(self, who: Validator | None, kind: str, **more: str) -> httpx.Response:
        body = {"artifact_type": kind, "agent_version_id": str(self.version.version_id), **more}
        return await self.ask(who, "POST", "/v1/public/artifacts/download-url", json=body)

    async def own(self, **params: Any) -> dict[str, dict[str, Any]]:
        answer = await self.ask(self.world.miner, "GET", self.logs, params=params)
        assert answer.status_code == 200, answer.text
        return {one["problem_id"]: one for one in answer.json()["logs"]}

    async def everything(self, who: Validator | None) -> bytes:
        """All that anybody who is no validator of the run can get hold of."""
        version, run, evaluation = self.version.version_id, self.run, self.evaluation.evaluation_id
        paths = [
            self.logs,
            *(f"{self.logs}?problem={problem(n).problem_id}" for n in (1, 2, 3, 4)),
            f"{self.logs}?evaluation={evaluation}",
            f"/v1/miner/agent-versions/{version}",
            f"/v1/miner/agent-versions/{version}/problems",
            f"/v1/public/agent-versions/{version}",
            f"/v1/public/agent-versions/{version}/status",
            f"/v1/public/agent-versions/{version}/runs",
            f"/v1/public/agent-versions/{version}/problems",
            f"/v1/public/agent-versions/{version}/code",
            f"/v1/public/evaluation-runs/{run}",
            f"/v1/public/records/alice-{evaluation.hex[:8]}-2/proof",
            f"/v1/objects/evaluation-runs/{run}/{HELD_OUT.problem_id}.json",
            f"/v1/agent-logs/{version}?kind=EVAL_LOGS_BUNDLE&expires=99999999999&signature=x",
            "/v1/public/suites/1/problems",
            "/v1/public/leaderboard",
        ]
        said = [(await self.ask(who, "GET", path)).content for path in paths]
        for kind in ("EVAL_LOGS_BUNDLE", "REASONING_DETAILS", "EVAL_PROBLEM_LOGS", "AGENT_CODE"):
            for number in (1, 2, 3, 4):
                asked = {"eval_run_id": str(run), "problem_id": problem(number).problem_id}
                for more in (asked, {}):
                    answer = await self.link(who, kind, **more)
                    said.append(answer.content)
                    if answer.status_code == 200:
                        file = await self.client.get(answer.json()["download_url"])
                        assert file.status_code == 200
                        said.append(file.content)
        return b"\n".join(said)


@pytest.fixture
async def played(database: Database, tmp_path: Any) -> AsyncIterator[Played]:
    rates = ApiSettings(data_dir=tmp_path, hotkey_rate=1e5, hotkey_burst=10**5,
                           address_rate=1e5, address_burst=10**5)  # fmt: skip
    world = World(database, tmp_path, rates)
    async with world.client() as client:
        found = Played(world, client)
        await found.begin()
        yield found


@pytest.mark.database
async def test_a_held_out_text_that_an_agent_printed_reaches_nobody_before_its_time(
    played: Played,
) -> None:
    world = played.world
    everybody = (world.miner, None, world.validators[1])
    for who in everybody:
        said = await played.everything(who)
        assert b"SECRET-OF" not in said  # the evaluation is not over
    await played.end()
    for who in everybody:
        said = await played.everything(who)
        assert b"SECRET-OF-2" not in said
        assert b"find 2" not in said
        shown = [n for n in (1, 3, 4) if b"SECRET-OF-%d" % n in said]
        assert shown == ([1, 3, 4] if who is world.miner else [])
    await played.open_held_out()
    assert b"SECRET-OF-2" in await played.everything(world.miner)
    for who in everybody[1:]:
        assert b"SECRET-OF" not in await played.everything(who)


@pytest.mark.database
async def test_of_a_held_out_problem_its_owner_is_told_code_axes_and_score(played: Played) -> None:
    assert await played.own() == {}
    await played.end()
    logs = await played.own()
    assert list(logs) == [problem(n).problem_id for n in (1, 2, 3, 4)]
    told = logs[HELD_OUT.problem_id]
    assert told["withheld"] == "held_out"
    assert told["failure"] == {"code": "agent.crashed", "message": None}
    assert (told["score"], told["reasoning_quality"], told["gate"]) == (0, 0.1, "inference")
    assert (told["success"], told["outcome"], told["axis"]) == (False, "no_recommendation", "A")
    assert (told["log_tail"], told["notes"], told["evidence"]) == (None, [], [])
    for other in logs.values():
        assert (other["gate"], other["score"]) == ("inference", 0)
    shown = logs[OPEN.problem_id]
    assert shown["withheld"] is None
    assert shown["failure"]["message"] == f"ValueError: {SECRET[1]}"
    assert shown["notes"][0]["message"] == SECRET[1]
    assert SECRET[1] in shown["log_tail"]
    assert shown["judges"] == ["standin/judge-1"]


@pytest.mark.database
async def test_pages_problems_and_tails_are_chosen(played: Played) -> None:
    await played.end()
    assert list(await played.own(limit=1, offset=2)) == [RETIRED.problem_id]
    (one,) = (await played.own(problem=OPEN.problem_id, tail=4)).values()
    assert len(one["log_tail"]) == 4
    (none,) = (await played.own(problem=OPEN.problem_id, tail=0)).values()
    assert none["log_tail"] == ""
    assert await played.own(problem=str(uuid4())) == {}
    assert await played.own(evaluation=str(uuid4())) == {}
    for params in ({"limit": 51}, {"tail": 10**6}, {"offset": -1}, {"problem": "../x"}):
        wrong = await played.ask(played.world.miner, "GET", played.logs, params=params)
        assert wrong.status_code == 422


@pytest.mark.database
async def test_nobody_but_the_owner_is_given_a_version_s_logs(played: Played) -> None:
    await played.end()
    world = played.world
    for other in (*world.validators, None):
        answer = await played.ask(other, "GET", played.logs)
        assert answer.status_code == (404 if other else 401)
        for kind in ("EVAL_LOGS_BUNDLE", "REASONING_DETAILS"):
            refused = await played.link(other, kind)
            assert refused.json()["error_code"] == "ARTIFACT_NOT_FOUND"
    forged = await played.client.post(
        "/v1/public/artifacts/download-url",
        json={
            "artifact_type": "EVAL_LOGS_BUNDLE",
            "agent_version_id": str(played.version.version_id),
        },
        headers={**world.validators[0].headers(), "X-Hotkey": world.miner.hotkey},
    )
    assert forged.json()["error_code"] == "INVALID_SIGNATURE"


@pytest.mark.database
async def test_the_owner_s_files_are_of_what_was_asked_and_no_more(played: Played) -> None:
    miner, evaluation = played.world.miner, played.evaluation
    early = await played.link(miner, "EVAL_LOGS_BUNDLE")
    assert early.json()["error_code"] == "ARTIFACT_NOT_RELEASED"
    await played.end()

    async def lines(kind: str, **more: str) -> list[dict[str, Any]]:
        url = (await played.link(miner, kind, **more)).json()["download_url"]
        file = await played.client.get(url)
        assert "attachment" in file.headers["content-disposition"]
        other = url.replace(kind, "REASONING_DETAILS")
        assert other == url or (await played.client.get(other)).status_code == 403
        if not more:
            widened = await played.client.get(f"{url}&problem={OPEN.problem_id}")
            assert widened.status_code == 403
        return [json.loads(line) for line in file.text.splitlines()]

    bundle = await lines("EVAL_LOGS_BUNDLE")
    assert [one["problem_id"] for one in bundle] == list(evaluation.problems)
    reasons = await lines("REASONING_DETAILS", eval_run_id=str(played.run),
                          problem_id=OPEN.problem_id)  # fmt: skip
    assert [one["problem_id"] for one in reasons] == [OPEN.problem_id]
    assert reasons[0]["gate"] == "inference"
    assert "log_tail" not in reasons[0]
    nowhere = await played.link(miner, "EVAL_LOGS_BUNDLE", eval_run_id=str(uuid4()))
    assert nowhere.json()["error_code"] == "EVAL_RUN_NOT_FOUND"


def test_a_problem_is_a_secret_while_it_or_its_cluster_is_raced() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    bank = Bank()
    for pool, number, one in (
        ("bank:open", 0, OPEN),
        ("bank:held_out", 1, HELD_OUT),
        ("bank:held_out", 1, RETIRED),
        ("suite:v2", 2, SUITE),
    ):
        bank.apply(Event("problem.imported", at, imported(one, pool, number)))
    data: Any = {"problems": [RETIRED.problem_id], "reason": "x"}
    bank.apply(Event("problem.retired", at, data))
    told = [text_withheld(bank, one.problem_id) for one in (OPEN, HELD_OUT, RETIRED, SUITE)]
    assert told == [None, TextWithheld.HELD_OUT, TextWithheld.HELD_OUT, None]
    assert text_withheld(bank, "nobody's") is TextWithheld.UNKNOWN


def test_what_an_operator_opened_is_withheld_while_a_race_has_drawn_it() -> None:
    driver, at = Driver(), datetime(2026, 1, 1, tzinfo=UTC)
    driver.open()
    driver.enter("a")
    driver.close()
    driver.draw()
    race = driver.season.running
    assert race is not None
    bank = Bank()
    drawn = race.problems[0].problem_id
    for number, which in enumerate((drawn, OPEN.problem_id)):
        one = replace(OPEN, problem_id=which)
        bank.apply(Event("problem.imported", at, imported(one, "bank:open", number)))
    assert own_text_withheld(bank, driver.season, drawn) is TextWithheld.RACING
    assert own_text_withheld(bank, driver.season, OPEN.problem_id) is None
    driver.now = race.deadline
    driver.settle()
    assert driver.season.running is None
    assert own_text_withheld(bank, driver.season, drawn) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.just("the SECRET text"),
    lambda some: st.lists(some, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["the SECRET key", "code", "message", "reason", "axes", "title", "axis", "gate",
             "quality", "evidence", "judges", "quote", "field", "unjudged", "success"]
        ),
        some,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip
FIELDS = ("outcome", "axis", "failure", "notes", "log_tail", "verdict", "unjudged", "final_score")
RECORDS = st.dictionaries(st.sampled_from(FIELDS), JSON)


@settings(max_examples=60)
@given(record=RECORDS, verdict=RECORDS)
def test_whatever_a_record_holds_no_text_of_it_is_told_while_withheld(
    record: Any, verdict: Any
) -> None:
    run, problem_id = UUID(int=1), str(UUID(int=2))
    one = CountedRecord(run, run, "race", "validator", problem_id, "product", b"", None)
    assert "SECRET" not in own_log(one, record, verdict, "held_out", 8_192).model_dump_json()
    own_log(one, record, verdict, None, 8_192).model_dump_json()


def test_what_is_told_is_bounded() -> None:
    run, long = UUID(int=1), "x\ud800" * 100_000
    one = CountedRecord(run, run, "race", "validator", str(run), "product", b"", None)
    span: Any = {"event": 1, "field": long, "start": 0, "end": 1, "quote": long}
    record: Any = {
        "failure": {"code": long, "message": long},
        "notes": [{"code": "a.b", "message": long}] * 500,
        "log_tail": long,
        "verdict": {"evidence": [span] * 500, "judges": [long] * 500},
    }
    told = own_log(one, record, record, None, 8_192)
    assert len(told.model_dump_json()) < 100_000
    assert told.failure is not None
    assert told.failure.code == "unknown"
    assert told.log_tail is not None
    assert len(told.log_tail) == 8_192
