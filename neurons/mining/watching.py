"""One look of a miner: has the file changed, may it be submitted, how does its version fare?

Everything is decided in `look`, by the time that is handed in; whoever calls it sleeps.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.miner import MinerClient, cooldown_of, moment
from arena.exceptions import ArtefactError
from arena.submissions.artefact_files import make_manifest
from arena.submissions.artefacts import Manifest
from arena.submissions.submit_cli import admitted_here
from arena.submissions.submit_show import SAID, rank_of, show_refusal, show_submitted, when
from neurons.mining.memory import Memory
from sandbox.terminal import console, plain

MAX_READ = 64 << 20
_FINAL = ("INVALID_FILE", "FILE_TOO_LARGE", "INVALID_AGENT_NAME", "CODE_ANALYSIS_ERROR")
"""Refusals that the same file meets again."""

Tell = Callable[[str], None]


def _say(line: str) -> None:
    console.print(line, soft_wrap=True)


class Watcher:
    """Watches one file, or the newest Python file of a folder."""

    def __init__(
        self,
        client: MinerClient,
        path: Path,
        memory: Path,
        *,
        name: str | None = None,
        artefact: Path | None = None,
        tell: Tell = _say,
    ) -> None:
        self._client = client
        self._path = path
        self._memory_path = memory
        self._memory = Memory.load(memory)
        self._name = name
        self._artefact = artefact
        self._tell = tell
        self._seen: str | None = None
        self._not_before: datetime | None = None
        self._asked = False
        self._state: tuple[str, int | None] | None = None

    @property
    def memory(self) -> Memory:
        """What it would remember now."""
        return self._memory

    async def look(self, now: datetime) -> None:
        """One look at the file and the arena. Raises SettingsError, and nothing of the arena's:
        a call that fails is told, and made again at the next look."""
        try:
            await self._submit(now)
            await self._follow()
        except ArenaApiError as error:
            self._tell(f"{plain(error.code)}: {plain(error.message)}")

    async def _submit(self, now: datetime) -> None:
        found = self._newest()
        if found is None:
            return
        path, source = found
        digest = self._digest(source)
        # Twice the same: an editor that writes in pieces is let finish.
        settled, self._seen = digest == self._seen, digest
        if not settled or digest == self._memory.handled or not await self._may(now):
            return
        name = self._name or path.stem
        if not await asyncio.to_thread(admitted_here, path, source, name):
            self._remember(replace(self._memory, handled=digest))
            return
        try:
            manifest = await asyncio.to_thread(self._manifest)
            if manifest is not None and self._artefact is not None:
                await self._client.send_artefact(manifest, self._artefact)
            done = await self._client.submit(name, source, manifest)
        except RefusedError as error:
            self._refused(error, path, digest, now)
            return
        except ArtefactError as error:
            self._tell(f"{plain(str(self._artefact))}: {plain(error.message)}")
            self._remember(replace(self._memory, handled=digest))
            return
        show_submitted(done, now)
        self._not_before = done.next_allowed_at
        self._state = None
        self._remember(Memory(digest, done.version_id))

    def _refused(self, error: RefusedError, path: Path, digest: str, now: datetime) -> None:
        cooldown = cooldown_of(error)
        if cooldown is None or cooldown.ends_at is None:
            show_refusal(error, str(path), now)
        else:
            self._tell(f"too soon: {when(cooldown.ends_at, now)}")
        ends_at = moment(error.body.get("next_allowed_at"))
        if ends_at is not None:
            self._not_before = ends_at
        if error.error_code in _FINAL:
            self._remember(replace(self._memory, handled=digest))

    async def _may(self, now: datetime) -> bool:
        """Whether the cooldown is over; asked of the arena once, at the start."""
        if not self._asked:
            self._not_before = moment((await self._client.agents()).get("next_allowed_at"))
            self._asked = True
            if self._not_before is not None and now < self._not_before:
                self._tell(f"a change is submitted after {when(self._not_before, now)}")
        return self._not_before is None or now >= self._not_before

    async def _follow(self) -> None:
        version = self._memory.version
        if version is None:
            return
        status = await self._client.status(version)
        rank = rank_of(await self._client.leaderboard(), str(version))
        state = str(status.get("state", ""))
        before, self._state = self._state, (state, rank)
        if before is None or before[0] != state:
            self._tell(f"{version}: {plain(state, 40)} {SAID.get(state, '')}")
        was = before[1] if before is not None else None
        if rank != was:
            self._tell(f"{version}: {_moved(was, rank)}")

    def _newest(self) -> tuple[Path, bytes] | None:
        """The file to submit; None while there is none, or it cannot be read."""
        try:
            path = self._path
            if path.is_dir():
                files = [p for p in path.glob("*.py") if p.is_file()]
                if not files:
                    return None
                path = max(files, key=lambda p: (p.stat().st_mtime_ns, p.name))
            with path.open("rb") as file:
                return path, file.read(MAX_READ)
        except OSError as error:
            self._tell(f"{plain(str(self._path))}: {error.strerror}")
            return None

    def _digest(self, source: bytes) -> str:
        digest = hashlib.sha256(source)
        if self._artefact is not None:  # another model is another submission
            for path in sorted(self._artefact.glob("*")):
                state = path.stat()
                digest.update(f"\n{path.name} {state.st_size} {state.st_mtime_ns}".encode())
        return digest.hexdigest()

    def _manifest(self) -> Manifest | None:
        if self._artefact is None:
            return None
        return make_manifest(self._artefact)

    def _remember(self, memory: Memory) -> None:
        self._memory = memory
        memory.save(self._memory_path)


def _moved(was: int | None, rank: int | None) -> str:
    if rank is None:
        return f"no rank any more (it was {was})"
    return f"rank {rank}" if was is None else f"rank {rank} (it was {was})"
