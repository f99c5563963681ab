"""A miner's calls to the arena: submitting, artefacts, status, credentials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from arena.client.backoff import Backoff
from arena.client.exceptions import COOLDOWN, AnswerError, RefusedError
from arena.client.session import ArenaSession
from arena.exceptions import ArtefactError
from arena.submissions.artefacts import Manifest, parse_source
from scoring.types import JsonObject

PATIENCE: Final = Backoff(first_s=1.0, longest_s=30.0, tries=5)
"""How patient a command is at a terminal, where somebody waits."""
LOGS_A_PAGE: Final = 50
MAX_LOGS: Final = 5_000
_ROUNDS = 3
"""How often links that ran out are asked for anew without anything having come through."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """A submission that the arena took in."""

    version_id: UUID
    agent_id: UUID | None
    number: int | None
    next_allowed_at: datetime | None


@dataclass(frozen=True, slots=True)
class CooldownRefusal:
    """What a cooldown's refusal says. `ends_at` is the arena's time."""

    ends_at: datetime | None
    remaining_s: int | None


@dataclass(frozen=True, slots=True)
class _Part:
    offset: int
    bytes: int
    url: str


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    sha256: str
    parts: tuple[_Part, ...]


class MinerClient:
    """Typed calls over one session. All raise ArenaApiError as `ArenaSession.call` does."""

    def __init__(self, session: ArenaSession, *, backoff: Backoff | None = None) -> None:
        self._session = session
        self._backoff = backoff

    async def submit(self, name: str, source: bytes, artefact: Manifest | None = None) -> Submitted:
        """Submit a file. The same file again gives the same version, so a try may be repeated."""
        fields = {"agent_name": name}
        if artefact is not None:
            from arena.runs.canonical import canonical

            fields["artefact"] = canonical(artefact.to_json()).decode()
        response = await self._session.request(
            "POST",
            "/v1/miner/submit",
            data=fields,
            files={"file": ("agent.py", source, "text/x-python")},
            backoff=self._backoff,
        )
        answer = _object(response.json())
        version = _uuid(answer.get("agent_version_id"))
        if version is None:
            raise AnswerError("the arena took the file and names no version")
        return Submitted(
            version,
            _uuid(answer.get("agent_id")),
            _int(answer.get("version_number")),
            moment(answer.get("next_allowed_at")),
        )

    async def send_artefact(
        self,
        manifest: Manifest,
        directory: Path,
        told: Callable[[int, int], None] | None = None,
    ) -> None:
        """Send the files that the arena lacks; what it has is not sent again.

        `told` hears of bytes sent and in all. Interrupted, it goes on where it was.
        """
        if parse_source(manifest.source) is not None:
            return
        last, idle = -1, 0
        while True:
            state = await self._state(manifest)
            if state.get("complete") is True:
                return
            files = _wanted(state)
            left = sum(part.bytes for file in files for part in file.parts)
            idle = idle + 1 if left == last else 0
            if idle >= _ROUNDS:
                raise AnswerError("the arena goes on lacking what it was sent")
            last = left
            await self._send(files, str(state.get("content_type")), directory, left, told)

    async def _send(
        self,
        files: list[_File],
        content_type: str,
        directory: Path,
        total: int,
        told: Callable[[int, int], None] | None,
    ) -> None:
        sent = 0
        for file in files:
            for part in file.parts:
                body = await asyncio.to_thread(_slice, directory / file.name, part)
                try:
                    await self._session.upload(part.url, body, content_type, backoff=self._backoff)
                except RefusedError as error:
                    if error.error_code == "INVALID_LINK":
                        return  # its time is over: the next round has new ones
                    raise
                sent += len(body)
                if told is not None:
                    told(sent, total)
            path = f"/v1/miner/artefacts/files/{file.sha256}/finalise"
            await self._session.request("POST", path, backoff=self._backoff)

    async def _state(self, manifest: Manifest) -> JsonObject:
        state = await self._session.json(
            "POST", "/v1/miner/artefacts", json=manifest.to_json(), backoff=self._backoff
        )
        if state.get("artefact") != manifest.hash:
            raise AnswerError("the arena knows this artefact by another hash")
        return state

    async def agents(self) -> JsonObject:
        """The hotkey's agents with their newest versions, and when it may submit again."""
        return await self._json("GET", "/v1/miner/agents")

    async def versions(self, agent_id: UUID) -> list[dict[str, Any]]:
        """The versions of one of its agents, the newest first."""
        return await self._rows(f"/v1/miner/agents/{agent_id}/versions")

    async def status(self, version_id: UUID) -> JsonObject:
        """How far one of its versions is."""
        return await self._json("GET", f"/v1/miner/agent-versions/{version_id}")

    async def problems(self, version_id: UUID) -> list[dict[str, Any]]:
        """How each problem went, by evaluation and validator; no problem's text."""
        return await self._rows(f"/v1/miner/agent-versions/{version_id}/problems")

    async def logs(
        self, version_id: UUID, problem: UUID | None = None, *, tail: int | None = None
    ) -> list[dict[str, Any]]:
        """How each problem went and why, in evaluations that are over, with `tail` characters
        of each log (None: all that is kept); `MAX_LOGS` at most.

        Text is in it of problems that are no secret. All of it is as hostile as an agent is.
        """
        path = f"/v1/miner/agent-versions/{version_id}/logs"
        asked = {"problem": None if problem is None else str(problem), "tail": tail}
        params = {name: value for name, value in asked.items() if value is not None}
        found: list[dict[str, Any]] = []
        while len(found) < MAX_LOGS:
            page = {**params, "limit": LOGS_A_PAGE, "offset": len(found)}
            rows = _list((await self._json("GET", path, params=page)).get("logs"))
            found += rows
            if len(rows) < LOGS_A_PAGE:
                break
        return found

    async def leaderboard(self) -> JsonObject:
        """The standings, as everybody sees them."""
        return await self._json("GET", "/v1/public/leaderboard")

    async def credentials(self) -> JsonObject:
        """Which providers it has a credential of."""
        return await self._json("GET", "/v1/miner/inference-auth")

    async def store_credential(self, provider: str, token: str) -> None:
        """Have a credential kept, sealed."""
        await self._json("POST", f"/v1/miner/inference-auth/{provider}", json={"credential": token})

    async def delete_credential(self, provider: str) -> None:
        """Have a credential forgotten."""
        await self._session.request(
            "DELETE", f"/v1/miner/inference-auth/{provider}", backoff=self._backoff
        )

    async def _json(self, method: str, path: str, **options: Any) -> JsonObject:
        return await self._session.json(method, path, backoff=self._backoff, **options)

    async def _rows(self, path: str) -> list[dict[str, Any]]:
        response = await self._session.request("GET", path, backoff=self._backoff)
        return _list(response.json())


def cooldown_of(error: RefusedError) -> CooldownRefusal | None:
    """When a refusal's wait is over; None for a refusal that is no cooldown."""
    if error.error_code != COOLDOWN:
        return None
    return CooldownRefusal(
        moment(error.body.get("next_allowed_at")), _int(error.body.get("remaining_seconds"))
    )


def moment(value: object) -> datetime | None:
    """A time of the arena's; None for what is none."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def _wanted(state: JsonObject) -> list[_File]:
    """What an answer asks for. Raises AnswerError when it cannot be understood."""
    try:
        return [
            _File(
                Path(str(file["path"])).name,
                str(file["sha256"]),
                tuple(
                    _Part(int(part["offset"]), int(part["bytes"]), str(part["url"]))
                    for part in file["parts"]
                ),
            )
            for file in _list(state.get("missing"))
        ]
    except (KeyError, TypeError, ValueError):
        raise AnswerError("the arena asks for files in a way nobody understands") from None


def _slice(path: Path, part: _Part) -> bytes:
    with path.open("rb") as file:
        file.seek(part.offset)
        body = file.read(part.bytes)
    if len(body) != part.bytes:
        raise ArtefactError(f"{path.name} has changed since it was hashed")
    return body


def _object(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        raise AnswerError("the arena's answer is no JSON object")
    return value


def _list(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise AnswerError("the arena's answer is no list of objects")
    return value


def _uuid(value: object) -> UUID | None:
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
