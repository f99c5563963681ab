"""The calls of a validator, each with its types; everything the arena answers is checked.

What the SDK has goes through its generated calls; records go by our own route. Credentials of
an inference provider that a claim brings are `SecretStr`: nothing here prints them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from oro_sdk.api.validator import (
    claim_work,
    complete_run,
    get_run_problems,
    get_weight_salt,
    heartbeat,
    presign_upload,
    update_progress,
)
from oro_sdk.models import (
    ClaimWorkRequest,
    ClaimWorkResponse,
    CompleteRunRequest,
    CompleteRunRequestScoreComponentsType0,
    CompleteRunResponse,
    EpochStandings,
    HeartbeatRequest,
    HeartbeatResponse,
    InferenceTokenGrant,
    PresignUploadRequest,
    PresignUploadResponse,
    ProblemProgressUpdate,
    ProblemStatus,
    ProgressUpdateRequest,
    ProgressUpdateResponse,
    RunProblemsResponse,
    TerminalStatus,
    WeightSaltResponse,
)
from oro_sdk.types import UNSET
from pydantic import SecretStr

from arena.client.backoff import ONCE, Backoff
from arena.client.exceptions import AnswerError
from arena.client.session import ArenaSession, json_object
from arena.exceptions import SealError
from arena.runs.agent import MAX_SOURCE_BYTES
from arena.runs.seal import Sealed
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import JsonObject, Problem
from scoring.weights import Finisher

T = TypeVar("T")

RECORDS_TYPE: Final = "application/zstd"
_PHASE = re.compile(r"[a-z_]{1,40}")
_HASH = re.compile(r"[0-9a-f]{64}")
_MAX_REASON = 2_000
_MAX_NAME = 100


@dataclass(frozen=True, slots=True)
class HostLoad:
    """How this machine is, in per cent; None is not known."""

    cpu_pct: float | None = None
    ram_pct: float | None = None
    disk_pct: float | None = None


@dataclass(frozen=True, slots=True)
class InferenceCredential:
    """A miner's own credential, lent to one run."""

    provider: str
    token: SecretStr
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that this validator holds until `expires_at`, unless it says before that it lives.

    `agent_name` is a miner's text. `artefact` is the manifest of a model that the agent brings.
    """

    run_id: UUID
    evaluation_id: UUID
    version: UUID
    phase: str
    agent_name: str
    source_hash: str
    suite: int
    code_url: str = field(repr=False)
    expires_at: datetime
    resumed: bool
    credential: InferenceCredential | None = None
    artefact: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Presigned:
    """Where one file may be left."""

    url: str = field(repr=False)
    key: str


@dataclass(frozen=True, slots=True)
class TakenRecord:
    """What became of a record that the arena has. `reason` says why it does not count."""

    counted: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Standings:
    """What the weights of an epoch are made of. Without `finishers` (None) there was no race
    yet. A validator that is not `eligible` burns."""

    epoch: int
    eligible: bool
    finishers: tuple[Finisher, ...] | None = None
    champion: str | None = None
    burn_share: float = 1.0
    race_id: str | None = None


@dataclass(frozen=True, slots=True)
class StoredChain:
    """How far the arena has this hotkey's chain of seals. `last` is its last seal, whose
    signature is for the caller to check; `asked` the hash of the one that was asked for."""

    last: Sealed | None = None
    asked: str | None = None


class ValidatorClient:
    """The calls of a validator over one session. Each raises ArenaApiError."""

    def __init__(self, session: ArenaSession) -> None:
        self.session = session

    async def claim(
        self,
        working: Sequence[UUID],
        host: HostLoad | None = None,
        *,
        backoff: Backoff | None = ONCE,
    ) -> Claim | None:
        """A run to do; None without one. `working`: the runs that are worked on now, so that
        any other that this validator holds comes back."""
        body = ClaimWorkRequest(**_host(host))
        body["working"] = [str(run) for run in working]
        answer = await self.session.call(
            lambda sdk: claim_work.asyncio(client=sdk, body=body), backoff=backoff
        )
        if answer is None:
            return None
        return _readable(lambda: _claim(_of(answer, ClaimWorkResponse)))

    async def code(self, claim: Claim, *, backoff: Backoff | None = None) -> bytes:
        """The agent's file; its hash is for the caller to check."""
        return await self.session.download(
            claim.code_url, max_bytes=MAX_SOURCE_BYTES, backoff=backoff
        )

    async def problems(self, run: UUID, *, backoff: Backoff | None = None) -> tuple[Problem, ...]:
        """The problems of a run with their rewards, in order."""
        answer = await self.session.call(
            lambda sdk: get_run_problems.asyncio(run, client=sdk), backoff=backoff
        )
        return _readable(lambda: _problems(_of(answer, RunProblemsResponse)))

    async def heartbeat(
        self, run: UUID, host: HostLoad | None = None, *, backoff: Backoff | None = ONCE
    ) -> datetime:
        """Hold a run for one more lease; until when."""
        body = HeartbeatRequest(**_host(host))
        answer = await self.session.call(
            lambda sdk: heartbeat.asyncio(run, client=sdk, body=body), backoff=backoff
        )
        return _readable(lambda: _time(_of(answer, HeartbeatResponse).lease_expires_at))

    async def progress(
        self, run: UUID, updates: Sequence[ProblemProgressUpdate], *, backoff: Backoff | None = ONCE
    ) -> None:
        """How far the problems of a run are, for pages."""
        body = ProgressUpdateRequest(list(updates))
        answer = await self.session.call(
            lambda sdk: update_progress.asyncio(run, client=sdk, body=body), backoff=backoff
        )
        _of(answer, ProgressUpdateResponse)

    async def presign(
        self, run: UUID, problem_id: str, length: int, *, backoff: Backoff | None = None
    ) -> Presigned:
        """A link to leave one JSON file of `length` bytes with a problem of a run."""
        body = PresignUploadRequest(length, run, UUID(problem_id))
        answer = await self.session.call(
            lambda sdk: presign_upload.asyncio(client=sdk, body=body), backoff=backoff
        )
        found = _of(answer, PresignUploadResponse)
        return Presigned(str(found.upload_url), str(found.results_s3_key))

    async def complete(
        self, run: UUID, score: float, components: JsonObject, *, backoff: Backoff | None = None
    ) -> None:
        """End a run in success. The same again is fine."""
        body = CompleteRunRequest(TerminalStatus.SUCCESS, validator_score=score)
        body.score_components = CompleteRunRequestScoreComponentsType0.from_dict(components)
        await self._ended(run, body, backoff)

    async def fail(
        self, run: UUID, reason: str, *, timed_out: bool = False, backoff: Backoff | None = None
    ) -> None:
        """Give a run up: by the validator's fault or the platform's, never the agent's."""
        status = TerminalStatus.TIMED_OUT if timed_out else TerminalStatus.FAILED
        body = CompleteRunRequest(status, failure_reason=reason[:_MAX_REASON])
        await self._ended(run, body, backoff)

    async def send_records(
        self, frames: bytes, *, backoff: Backoff | None = None
    ) -> list[TakenRecord]:
        """Hand over a stretch of a spool; what became of each record, in order."""
        answer = await self.session.request(
            "POST",
            "/v1/validator/records",
            content=frames,
            headers={"content-type": RECORDS_TYPE},
            backoff=backoff,
        )
        value = json_object(answer.content)
        return _readable(
            lambda: [
                TakenRecord(bool(one["counted"]), one["reason"] and str(one["reason"])[:60])
                for one in cast("list[dict[str, Any]]", value["records"])
            ]
        )

    async def chain_head(self, sequence: int = 0, *, backoff: Backoff | None = ONCE) -> StoredChain:
        """How far the arena has this hotkey's chain, and what it has with this number."""
        answer = await self.session.request(
            "GET",
            "/v1/validator/chain-head",
            params={"sequence": sequence} if sequence else None,
            backoff=backoff,
        )
        value = json_object(answer.content)
        return _readable(lambda: _stored_chain(value))

    async def standings(self, *, backoff: Backoff | None = ONCE) -> Standings:
        """The standings of the chain's epoch, the same for every validator."""
        answer = await self.session.call(
            lambda sdk: get_weight_salt.asyncio(client=sdk), backoff=backoff
        )
        return _readable(lambda: _standings(_of(answer, WeightSaltResponse)))

    async def _ended(self, run: UUID, body: CompleteRunRequest, backoff: Backoff | None) -> None:
        answer = await self.session.call(
            lambda sdk: complete_run.asyncio(run, client=sdk, body=body), backoff=backoff
        )
        _of(answer, CompleteRunResponse)


def update(
    problem_id: str, status: ProblemStatus, score: float | None = None
) -> ProblemProgressUpdate:
    """One line of progress."""
    return ProblemProgressUpdate(UUID(problem_id), status, score=UNSET if score is None else score)


def _of(answer: object, kind: type[T]) -> T:
    """The answer that was asked for. Raises AnswerError for another one."""
    if not isinstance(answer, kind):
        raise AnswerError(f"the arena's answer is no {kind.__name__}")
    return answer


def _readable(read: Callable[[], T]) -> T:
    """What `read` makes of an answer, whose fields may be anything."""
    try:
        return read()
    except (KeyError, TypeError, ValueError, AttributeError, ProblemError) as error:
        raise AnswerError(f"the arena's answer cannot be read: {type(error).__name__}") from None


def _claim(answer: ClaimWorkResponse) -> Claim:
    more = answer.additional_properties
    phase, source = str(more["phase"]), str(more["source_sha256"])
    if not (_PHASE.fullmatch(phase) and _HASH.fullmatch(source)):
        raise ValueError("phase or hash")
    artefact = more.get("artefact")
    return Claim(
        run_id=answer.eval_run_id,
        evaluation_id=UUID(more["evaluation_id"]),
        version=answer.agent_version_id,
        phase=phase,
        agent_name=str(more["agent_name"])[:_MAX_NAME],
        source_hash=source,
        suite=int(answer.suite_id),
        code_url=str(answer.code_download_url),
        expires_at=_time(answer.lease_expires_at),
        resumed=bool(more["resumed"]),
        credential=_credential(answer.inference_token),
        artefact=cast("JsonObject", artefact) if isinstance(artefact, dict) else None,
    )


def _credential(value: Any) -> InferenceCredential | None:
    """The SDK's grant, or the same under our names."""
    if isinstance(value, InferenceTokenGrant):
        value = value.to_dict()
    if not isinstance(value, dict):
        return None
    token = value.get("token") or value.get("access_token")
    if not isinstance(token, str) or not token:
        return None
    base_url = value.get("base_url")
    return InferenceCredential(
        str(value.get("provider", ""))[:_MAX_NAME],
        SecretStr(token),
        base_url if isinstance(base_url, str) else None,
    )


def _problems(answer: RunProblemsResponse) -> tuple[Problem, ...]:
    problems = []
    for one in answer.problems:
        metadata = cast("Any", one.metadata)
        value = metadata if isinstance(metadata, dict) else metadata.to_dict()
        problem = read_problem(value)
        if problem.problem_id != str(one.problem_id):
            raise ValueError("another problem")
        problems.append(problem)
    if len({problem.problem_id for problem in problems}) != len(problems) or not problems:
        raise ValueError("no problems, or one twice")
    return tuple(problems)


def _standings(answer: WeightSaltResponse) -> Standings:
    epoch, eligible = int(answer.epoch_index), answer.eligible is True
    given = answer.epoch_standings
    if given is UNSET or given is None:
        return Standings(epoch, eligible)
    given = _of(given, EpochStandings)
    finishers = tuple(
        Finisher(str(f.miner_hotkey), str(f.agent_version_id), float(f.race_score))
        for f in (given.finishers or ())
    )
    burn = float(given.t_burn)
    if not (math.isfinite(burn) and 0 <= burn <= 1):
        raise ValueError("a share that is none")
    more = given.additional_properties
    champion, race = more.get("top_version"), more.get("race_id")
    return Standings(
        epoch,
        eligible,
        finishers,
        champion if isinstance(champion, str) else None,
        burn,
        race if isinstance(race, str) else None,
    )


def _stored_chain(value: JsonObject) -> StoredChain:
    line, asked = value["sealed"], value["asked"]
    if not (asked is None or (isinstance(asked, str) and _HASH.fullmatch(asked))):
        raise ValueError("no hash")
    if line is None:
        return StoredChain(asked=asked)
    try:
        last = Sealed.from_line(str(line).encode())
        _ = last.seal
    except SealError as error:
        raise ValueError("no seal") from error
    return StoredChain(last, asked)


def _host(host: HostLoad | None) -> dict[str, Any]:
    if host is None:
        return {}
    known = {"cpu_pct": host.cpu_pct, "ram_pct": host.ram_pct, "disk_pct": host.disk_pct}
    return {name: value for name, value in known.items() if value is not None}


def _time(value: datetime) -> datetime:
    """In UTC; a time without a zone is none."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(UTC)
