"""The published SDK, unmodified, reads everything that is public from a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from oro_sdk import AuthenticatedClient, Client
from oro_sdk.api.public import (
    get_agent_version,
    get_agent_version_problems,
    get_agent_version_runs,
    get_agent_version_status,
    get_artifact_download_url,
    get_current_race,
    get_current_suite,
    get_episode_feedback,
    get_evaluation_run,
    get_inference_models,
    get_leaderboard,
    get_pending_evaluations,
    get_race_detail,
    get_race_history,
    get_race_seed_commitment,
    get_race_validator_variance,
    get_running_evaluations,
    get_suite_problems,
    get_top_agent,
    get_top_history,
    get_top_miner_payout,
    get_trajectory_history,
    get_validators,
    join_waitlist,
    list_suites,
)
from oro_sdk.api.validator import claim_work
from oro_sdk.models import (
    AgentVersionNotFoundError,
    AgentVersionProblemsResponse,
    AgentVersionPublic,
    AgentVersionStatus,
    ArtifactDownloadRequest,
    ArtifactDownloadResponse,
    ArtifactNotFoundError,
    ArtifactNotReleasedError,
    ArtifactType,
    ClaimWorkResponse,
    EvalRunNotFoundError,
    EvaluationRunDetail,
    InferenceModelsResponse,
    LeaderboardResponse,
    MissingParameterError,
    PendingEvaluationsResponse,
    ProblemPublicMetadata,
    RaceCurrentResponse,
    RaceDetailResponse,
    RaceHistoryResponse,
    RaceInFlightError,
    RaceNotFoundError,
    RacePublic,
    RaceSeedCommitmentResponse,
    RaceValidatorVarianceResponse,
    SuiteNotFoundError,
    SuitePublic,
    SuiteWithProblemsResponse,
    TopAgentResponse,
    TopHistoryResponse,
    TopMinerPayoutResponse,
    TrajectoryHistoryResponse,
    WaitlistSignupRequest,
)

from arena.api.app import create_app
from arena.api.public_views import race_uuid
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.season.record import DrawRecord
from arena.season.verifying import verify
from arena.submissions.store import AgentVersion
from tests.integration.past_season import PastSeason, source
from tests.integration.sdk import sdk_client
from tests.integration.test_no_secret_in_the_clear import session
from tests.unit.arena.api.world import World, frames, problem, served

pytestmark = pytest.mark.database


@dataclass
class Played:
    """Two agents raced eight days ago and `winner` won; a third races now; `problem(1)` is
    retired and `problem(2)` in use; a race that nobody has entered is in qualifying."""

    world: World
    season: PastSeason
    winner: AgentVersion
    loser: AgentVersion
    racing: AgentVersion
    over: str
    running: str
    qualifying: str


@pytest.fixture
async def played(database: Database, tmp_path: Path) -> Played:
    settings = ApiSettings(data_dir=tmp_path, inference_models=frozenset({"m-2", "m-1"}))
    world = World(database, tmp_path, settings)
    season = PastSeason(world, datetime.now(UTC) - timedelta(days=9))
    await season.begin()
    suite = [problem(100)]
    await season.import_problems(
        {"suite:v1": suite, "bank:open": [problem(1), problem(2)], "bank:held_out": [problem(3)]}
    )
    over = await season.open()
    winner = await season.submit(world.miner.hotkey, "Winner")
    loser = await season.submit(world.validators[0].hotkey, "Loser")
    await season.qualify(winner, 0.9)
    await season.qualify(loser, 0.8)
    await season.close()
    await season.draw()
    await season.race({winner.version_id: 2, loser.version_id: 1})
    season.now = datetime.now(UTC) - timedelta(days=2)
    await season.retire(problem(1))
    running = await season.open()
    racing = await season.submit(world.validators[1].hotkey, "Racing now")
    await season.qualify(racing, 0.7)
    await season.close()
    await season.draw()
    season.now = max(season.now, datetime.now(UTC) - timedelta(hours=1))
    qualifying = await season.open()
    return Played(world, season, winner, loser, racing, over, running, qualifying)


@asynccontextmanager
async def public(world: World) -> AsyncIterator[tuple[str, Client]]:
    async with served(create_app(world.services())) as url, Client(base_url=url) as client:
        yield url, client


async def test_standings(played: Played) -> None:
    winner, loser = played.winner.version_id, played.loser.version_id
    async with public(played.world) as (_, client):
        board = await get_leaderboard.asyncio(client=client)
        assert isinstance(board, LeaderboardResponse)
        shown = [(e.rank, e.agent_name, e.final_score) for e in board.entries]
        assert shown == [(1, "Winner", 0.9), (2, "Loser", 0.8), (3, "Racing now", 0.7)]
        assert (board.total, board.unique_miners) == (3, 3)
        assert [e.is_current_top for e in board.entries] == [True, False, False]
        raced = await get_leaderboard.asyncio(client=client, score_type="race", limit=1)
        assert isinstance(raced, LeaderboardResponse)
        assert [(e.agent_version_id, e.race_score) for e in raced.entries] == [(winner, 1.0)]
        assert raced.total == 2
        second = await get_leaderboard.asyncio(client=client, score_type="race", offset=1)
        assert isinstance(second, LeaderboardResponse)
        assert [e.agent_version_id for e in second.entries] == [loser]
        for text, names in (("win", ["Winner"]), ("%", []), ("'; DROP TABLE agents; --", [])):
            found = await get_leaderboard.asyncio(client=client, q=text)
            assert isinstance(found, LeaderboardResponse)
            assert [e.agent_name for e in found.entries] == names

        top = await get_top_agent.asyncio(client=client)
        assert isinstance(top, TopAgentResponse)
        assert (top.top_agent_version_id, top.top_score) == (winner, 1.0)
        assert isinstance(top.margin, float)
        assert 0.01 < top.margin < 0.10
        history = await get_top_history.asyncio(client=client)
        assert isinstance(history, TopHistoryResponse)
        assert [(e.agent_name, e.is_current_top) for e in history.entries] == [("Winner", True)]
        paid = await get_top_miner_payout.asyncio(client=client)
        assert isinstance(paid, TopMinerPayoutResponse)
        assert (paid.miner_hotkey, paid.tao_per_day) == (played.winner.hotkey, None)


async def test_races(played: Played) -> None:
    async with public(played.world) as (_, client):
        now = await get_current_race.asyncio(client=client)
        assert isinstance(now, RaceCurrentResponse)
        assert isinstance(now.race, RacePublic)
        assert isinstance(now.qualifiers, list)
        assert now.race["name"] == played.running
        names = {q.agent_name: q.race_score for q in now.qualifiers}
        assert names == {"Racing now": None, "Winner": None}, "no score before the race is over"
        history = await get_race_history.asyncio(client=client)
        assert isinstance(history, RaceHistoryResponse)
        (race,) = history.races
        assert (race.race_id, race.winner_agent_name) == (race_uuid(played.over), "Winner")
        assert (race.winner_score, race.scored_count, race.race_number) == (1.0, 2, 1)
        detail = await get_race_detail.asyncio(race.race_id, client=client)
        assert isinstance(detail, RaceDetailResponse)
        assert isinstance(detail.qualifiers, list)
        ranks = {q.agent_name: (q.race_rank, q.race_score) for q in detail.qualifiers}
        assert ranks == {"Winner": (1, 1.0), "Loser": (2, 0.5)}

        for name, revealed in (
            (played.over, True),
            (played.running, True),
            (played.qualifying, False),
        ):
            bound = await get_race_seed_commitment.asyncio(race_uuid(name), client=client)
            assert isinstance(bound, RaceSeedCommitmentResponse)
            assert bound.revealed is revealed
            assert isinstance(bound.secret, str) is revealed
            async with httpx.AsyncClient() as plain:
                record = DrawRecord.from_json((await plain.get(bound["record_url"])).json())
            assert record.commitment.hash == bound["commitment_sha256"]
            assert bool(record.opened) is (name == played.over)
            if revealed:
                assert verify(record).wrong == ()

        strange = uuid4()
        for answer in (
            await get_race_detail.asyncio(strange, client=client),
            await get_race_seed_commitment.asyncio(strange, client=client),
            await get_race_validator_variance.asyncio(strange, client=client),
        ):
            assert isinstance(answer, RaceNotFoundError)


async def test_suites_are_shown_without_answers_and_the_bank_is_not(played: Played) -> None:
    async with public(played.world) as (url, client):
        suites = await list_suites.asyncio(client=client)
        assert isinstance(suites, list)
        assert [s.suite_id for s in suites if not s.is_active] == [1]
        current = await get_current_suite.asyncio(client=client)
        assert isinstance(current, SuitePublic)
        assert current.is_active
        shown = await get_suite_problems.asyncio_detailed(1, client=client)
        assert isinstance(shown.parsed, SuiteWithProblemsResponse)
        (one,) = shown.parsed.problems
        assert str(one.problem_id) == problem(100).problem_id
        assert isinstance(one.metadata, ProblemPublicMetadata)
        assert one.metadata.to_dict() == {"query": "find 100", "category": "product"}
        assert b"reward" not in shown.content
        for number in (2, current.suite_id, 999):
            hidden = await get_suite_problems.asyncio(number, client=client)
            assert isinstance(hidden, SuiteNotFoundError)
        everything = b""
        async with httpx.AsyncClient(base_url=url) as plain:
            for path in ("leaderboard", "suites", "races/current", "races/history", "top"):
                everything += (await plain.get(f"/v1/public/{path}")).content
    for number in (2, 3):
        assert problem(number).problem_id.encode() not in everything
        assert f"find {number}".encode() not in everything


async def _evaluated(played: Played, url: str) -> tuple[UUID, UUID]:
    """Both problems of the winner's race by the first validator; its run and evaluation."""
    world, season = played.world, played.season
    alice = world.validators[0]
    evaluation = await season.evaluation(played.winner, played.over)
    async with sdk_client(url, alice) as sdk:
        work = await claim_work.asyncio(client=sdk)
    assert isinstance(work, ClaimWorkResponse)
    sealed = [
        alice.seal(season.record(played.winner, evaluation, n, "alice").encode()) for n in (1, 2)
    ]
    async with httpx.AsyncClient(base_url=url) as plain:
        sent = await plain.post(
            "/v1/validator/records", content=frames(sealed), headers=alice.headers()
        )
        assert (sent.status_code, sent.json()["counted"]) == (200, 2), sent.text
    return work.eval_run_id, evaluation.evaluation_id


async def _complete(played: Played, url: str, run: UUID) -> None:
    async with httpx.AsyncClient(base_url=url) as plain:
        done = await plain.post(
            f"/v1/validator/evaluation-runs/{run}/complete",
            json={"terminal_status": "SUCCESS"},
            headers=played.world.validators[0].headers(),
        )
    assert done.status_code == 200, done.text


async def test_of_a_run_only_released_problems_are_shown_and_no_score_before_its_end(
    played: Played,
) -> None:
    winner = played.winner.version_id
    async with public(played.world) as (url, client):
        run, _ = await _evaluated(played, url)
        pending = await get_pending_evaluations.asyncio(client=client)
        assert isinstance(pending, PendingEvaluationsResponse)
        assert pending.items[0].agent_name == "Winner"
        running = await get_running_evaluations.asyncio(client=client)
        assert isinstance(running, list)
        assert [(r.eval_run_id, r.progress_percent) for r in running] == [(run, 100.0)]
        (before,) = await get_agent_version_runs.asyncio(winner, client=client) or []  # type: ignore[misc]
        assert before.validator_score is None
        await _complete(played, url, run)

    async with public(played.world) as (url, client):
        (after,) = await get_agent_version_runs.asyncio(winner, client=client) or []  # type: ignore[misc]
        assert (after.eval_run_id, after.is_included) == (run, True)
        assert isinstance(after.validator_score, float)
        assert after.race_number == 1
        detail = await get_evaluation_run.asyncio(run, client=client)
        assert isinstance(detail, EvaluationRunDetail)
        assert detail.score == after.validator_score
        items = detail.items
        assert items is not None
        assert [i.item_id for i in items.items] == [problem(1).problem_id]  # type: ignore[union-attr]
        assert (items.persisted_item_count, items.detail_released) == (2, False)  # type: ignore[union-attr]
        shown = await get_agent_version_problems.asyncio(winner, client=client)
        assert isinstance(shown, AgentVersionProblemsResponse)
        assert [str(p.problem_id) for p in shown.problems] == [problem(1).problem_id]
        assert shown["withheld"] == 1
        none = await get_agent_version_problems.asyncio(winner, client=client, phase="qualifying")
        assert isinstance(none, AgentVersionProblemsResponse)
        assert none.problems == []
        variance = await get_race_validator_variance.asyncio(race_uuid(played.over), client=client)
        assert isinstance(variance, RaceValidatorVarianceResponse)
        assert variance.n_pairs == 0, "one validator has no peer"
        assert isinstance(
            await get_evaluation_run.asyncio(uuid4(), client=client), EvalRunNotFoundError
        )

        async with httpx.AsyncClient(base_url=url) as plain:
            mine = await plain.get(
                f"/v1/miner/agent-versions/{winner}/problems",
                headers=played.world.miner.headers(),
            )
        (one,) = mine.json()
        assert [p["problem_id"] for p in one["problems"]] == [
            problem(1).problem_id,
            problem(2).problem_id,
        ]
        assert b"find 2" not in mine.content, "the text of a problem in use is withheld"


async def test_agents_and_their_code(played: Played) -> None:
    winner, loser, racing = (v.version_id for v in (played.winner, played.loser, played.racing))
    async with public(played.world) as (url, client):
        status = await get_agent_version_status.asyncio(winner, client=client)
        assert isinstance(status, AgentVersionStatus)
        assert (status.state.value, status.race_score, status["is_champion"]) == (
            "ELIGIBLE",
            1.0,
            True,
        )
        out = await get_agent_version_status.asyncio(loser, client=client)
        assert isinstance(out, AgentVersionStatus)
        assert (out.eliminated_in_race_number, out.release_state) == (1, "HIDDEN")
        known = await get_agent_version.asyncio(winner, client=client)
        assert isinstance(known, AgentVersionPublic)
        assert known.agent_name == "Winner"
        hidden = await get_agent_version.asyncio(loser, client=client)
        assert isinstance(hidden, ArtifactNotReleasedError)
        for answer in (
            await get_agent_version.asyncio(uuid4(), client=client),
            await get_agent_version_status.asyncio(uuid4(), client=client),
            await get_agent_version_runs.asyncio(uuid4(), client=client),
            await get_agent_version_problems.asyncio(uuid4(), client=client),
        ):
            assert isinstance(answer, AgentVersionNotFoundError)

        async def link(version: UUID, kind: ArtifactType, **more: UUID) -> object:
            request = ArtifactDownloadRequest(kind, version, **more)
            return await get_artifact_download_url.asyncio(client=client, body=request)

        code = await link(winner, ArtifactType.AGENT_CODE)
        assert isinstance(code, ArtifactDownloadResponse)
        async with httpx.AsyncClient() as plain:
            file = await plain.get(code.download_url)
            forged = code.download_url.replace(str(winner), str(loser))
            assert file.content == source("Winner")
            assert (await plain.get(forged)).status_code == 403
        assert isinstance(await link(loser, ArtifactType.AGENT_CODE), ArtifactNotReleasedError)
        assert isinstance(await link(racing, ArtifactType.AGENT_CODE), RaceInFlightError)
        assert isinstance(await link(uuid4(), ArtifactType.AGENT_CODE), AgentVersionNotFoundError)
        logs = ArtifactType.EVAL_PROBLEM_LOGS
        assert isinstance(await link(winner, logs), MissingParameterError)
        nowhere = await link(winner, logs, eval_run_id=uuid4(), problem_id=uuid4())
        assert isinstance(nowhere, EvalRunNotFoundError)
        bundle = await link(winner, ArtifactType.EVAL_LOGS_BUNDLE)
        assert isinstance(bundle, ArtifactNotFoundError)

        run, _ = await _evaluated(played, url)
        for number, expected in ((1, ArtifactNotFoundError), (2, ArtifactNotReleasedError)):
            which = UUID(problem(number).problem_id)
            found = await link(winner, logs, eval_run_id=run, problem_id=which)
            assert isinstance(found, expected)
        left = played.world.directory / "objects/evaluation-runs" / str(run)
        left.mkdir(parents=True)
        (left / f"{problem(1).problem_id}.json").write_bytes(b"{}")
        released = await link(winner, logs, eval_run_id=run, problem_id=UUID(problem(1).problem_id))
        assert isinstance(released, ArtifactDownloadResponse)
        async with httpx.AsyncClient() as plain:
            assert (await plain.get(released.download_url)).content == b"{}"


async def test_an_owner_with_a_session_is_led_to_its_logs_and_reasons(played: Played) -> None:
    winner, miner = played.winner.version_id, played.world.miner
    async with public(played.world) as (url, anybody):
        async with httpx.AsyncClient(base_url=url) as plain:
            token = await session(plain, miner)
            other = await session(plain, played.world.validators[1])

        async def link(client: Client | AuthenticatedClient, kind: ArtifactType) -> object:
            body = ArtifactDownloadRequest(kind, winner)
            return await get_artifact_download_url.asyncio(client=client, body=body)

        run, _ = await _evaluated(played, url)
        async with (
            AuthenticatedClient(base_url=url, token=token) as owner,
            AuthenticatedClient(base_url=url, token=other) as stranger,
        ):
            for kind in (ArtifactType.EVAL_LOGS_BUNDLE, ArtifactType.REASONING_DETAILS):
                assert isinstance(await link(owner, kind), ArtifactNotReleasedError)
            await _complete(played, url, run)
            for kind in (ArtifactType.EVAL_LOGS_BUNDLE, ArtifactType.REASONING_DETAILS):
                for nobody in (anybody, stranger):
                    assert isinstance(await link(nobody, kind), ArtifactNotFoundError)
                found = await link(owner, kind)
                assert isinstance(found, ArtifactDownloadResponse)
                async with httpx.AsyncClient() as plain:
                    lines = (await plain.get(found.download_url)).text.splitlines()
                told = [json.loads(line) for line in lines]
                assert [one["gate"] for one in told] == ["inference"] * 2
                assert [one["withheld"] for one in told] == [None, None]
                assert ("log_tail" in told[0]) is (kind is ArtifactType.EVAL_LOGS_BUNDLE)


async def test_validators_listedand_what_is_not_offered(played: Played) -> None:
    async with public(played.world) as (url, client):
        await _evaluated(played, url)
        validators = await get_validators.asyncio(client=client)
        assert isinstance(validators, list)
        at_work = {v.hotkey: v.status.value for v in validators}
        alice, bob = played.world.validators
        assert at_work == {alice.hotkey: "evaluating", bob.hotkey: "available"}
        models = await get_inference_models.asyncio(client=client)
        assert isinstance(models, InferenceModelsResponse)
        assert models.models == ["m-1", "m-2"]
        ranked = await get_inference_models.asyncio(client=client, ranked=True)
        # Its parser takes either answer for the first of the two.
        assert isinstance(ranked, InferenceModelsResponse)
        listed: Any = ranked.models
        assert [one["id"] for one in listed] == ["m-1", "m-2"]
        grown = await get_trajectory_history.asyncio(client=client)
        assert isinstance(grown, TrajectoryHistoryResponse)
        assert (grown.total, grown.series) == (0, [])
        waiting = await join_waitlist.asyncio_detailed(
            client=client, body=WaitlistSignupRequest("me@example.org")
        )
        assert (waiting.status_code, b"NOT_OFFERED" in waiting.content) == (404, True)
        episode = await get_episode_feedback.asyncio(uuid4(), client=client)
        assert isinstance(episode, ArtifactNotFoundError)


async def test_an_empty_arena_has_an_answer_to_everything(
    database: Database, tmp_path: Path
) -> None:
    world = World(database, tmp_path, ApiSettings(data_dir=tmp_path))
    async with public(world) as (_, client):
        board = await get_leaderboard.asyncio(client=client)
        assert isinstance(board, LeaderboardResponse)
        assert (board.entries, board.total) == ([], 0)
        top = await get_top_agent.asyncio(client=client)
        assert isinstance(top, TopAgentResponse)
        assert top.top_agent_version_id is None
        race = await get_current_race.asyncio(client=client)
        assert isinstance(race, RaceCurrentResponse)
        assert race.race is None
        assert isinstance(await get_current_suite.asyncio(client=client), SuiteNotFoundError)
        assert await list_suites.asyncio(client=client) == []
        assert await get_validators.asyncio(client=client) == []


async def test_pages_are_bounded(database: Database, tmp_path: Path) -> None:
    world = World(database, tmp_path, ApiSettings(data_dir=tmp_path))
    async with world.client() as client:
        for query in ("limit=0", "limit=201", "limit=NaN", "offset=-1", "offset=100001"):
            for path in ("leaderboard", "races/history", "evaluations/pending"):
                answer = await client.get(f"/v1/public/{path}?{query}")
                assert answer.status_code == 422, (path, query)
