"""Which files of model artefacts the arena has, by SHA-256, and which are on their way.

Content-addressed: a file that anybody stored need not be sent again, and who sends the rest
of one goes on where it was. A file counts as stored only after this arena has hashed it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from sqlalchemy import func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from arena.api.artefact_objects import (
    Parts,
    keep_all,
    kept_part,
    open_parts,
    part_lengths,
    remove_kept,
    remove_uploaded,
    upload_part,
)
from arena.api.errors import Code, Refusal
from arena.api.services import Services
from arena.db.artefact_tables import artefact_files, artefact_uploads
from arena.submissions.artefacts import ArtefactFile, ArtefactLimits, Manifest, parse_source

UPLOAD_LASTS = timedelta(days=1)
"""How long a file may be on its way; then its parts are forgotten."""
MOST_UPLOADS = 1_000
"""Files that one hotkey may begin to send within that time. Its quota bounds bytes alone, and
each file is a row that stays."""
_ASKED_AT_ONCE = 16
_LOCK_SPACE = 0x4152_5446


@dataclass(frozen=True, slots=True)
class FileUpload:
    """One file on its way: which of its parts have come."""

    upload_id: UUID
    file: ArtefactFile
    lengths: tuple[int, ...]
    there: frozenset[int]


@dataclass(frozen=True, slots=True)
class KeptFile:
    """One stored file: its parts' keys and lengths, in order."""

    sha256: str
    bytes: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Open:
    upload_id: UUID
    bytes: int
    part_bytes: int


class ArtefactStore:
    """Files of artefacts. Driver errors pass through."""

    def __init__(self, services: Services) -> None:
        self._settings = services.settings
        self._engine = services.engine
        self._parts: Parts = open_parts(services.objects, services.clock)
        self._busy: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def limits(self) -> ArtefactLimits:
        """How large an artefact may be here."""
        return ArtefactLimits(
            file_bytes=self._settings.artefact_file_bytes, bytes=self._settings.artefact_bytes
        )

    async def missing(self, manifest: Manifest) -> list[ArtefactFile]:
        """Files that the arena would have to have, and has not: none for one on the hub."""
        if parse_source(manifest.source) is not None:
            return []
        wanted = {bytes.fromhex(file.sha256) for file in manifest.files}
        query = select(artefact_files.c.sha256, artefact_files.c.bytes).where(
            artefact_files.c.sha256.in_(wanted)
        )
        async with self._engine.connect() as connection:
            rows = (await connection.execute(query)).all()
        there = {(row.sha256.hex(), row.bytes) for row in rows}
        return [file for file in manifest.files if (file.sha256, file.bytes) not in there]

    async def begin(
        self, hotkey: str, files: Iterable[ArtefactFile], now: datetime
    ) -> list[FileUpload]:
        """Let a hotkey send these files, or go on with them.

        Raises Refusal (409) when that is more than its quota.
        """
        # Two names for one file are one upload.
        wanted = {file.sha256: file for file in files}
        async with self._engine.begin() as connection:
            # One request of a hotkey at a time: the quota is counted and taken in one step.
            await connection.execute(
                text("SELECT pg_advisory_xact_lock(:space, hashtext(:hotkey))"),
                {"space": _LOCK_SPACE, "hotkey": hotkey},
            )
            found = await self._on_the_way(connection, hotkey, now)
            fresh = [f for sha, f in wanted.items() if (sha, f.bytes) not in found]
            await self._check_quota(connection, hotkey, found, fresh)
            for file in fresh:
                row = _Open(uuid4(), file.bytes, self._part_bytes)
                found[file.sha256, file.bytes] = row
                await connection.execute(
                    artefact_uploads.insert().values(
                        upload_id=row.upload_id,
                        hotkey=hotkey,
                        sha256=bytes.fromhex(file.sha256),
                        bytes=row.bytes,
                        part_bytes=row.part_bytes,
                        begun_at=now,
                    )
                )
        await self._sweep(now)
        return [await self._state(found[sha, f.bytes], f) for sha, f in wanted.items()]

    async def finish(self, hotkey: str, sha256: str, now: datetime) -> KeptFile:
        """Hash what a hotkey sent, and keep it when it is what it was said to be. Again is fine.

        Raises Refusal: 404 when nothing is on its way, 409 while a part is missing, 400 when
        the bytes are other ones; they are forgotten then.
        """
        async with self._busy[sha256]:
            try:
                return await self._finish(hotkey, sha256, now)
            finally:
                self._busy.pop(sha256, None)

    async def kept(self, sha256: str) -> KeptFile | None:
        """A stored file; None when there is none."""
        table = artefact_files.c
        query = select(table.bytes, table.part_bytes, table.object_id).where(
            table.sha256 == bytes.fromhex(sha256)
        )
        async with self._engine.connect() as connection:
            row = (await connection.execute(query)).one_or_none()
        if row is None:
            return None
        lengths = part_lengths(row.bytes, row.part_bytes)
        keys = [(kept_part(row.object_id, n), length) for n, length in enumerate(lengths)]
        return KeptFile(sha256, row.bytes, tuple(keys))

    @property
    def _part_bytes(self) -> int:
        return min(self._settings.artefact_part_bytes, self._settings.upload_bytes)

    async def _finish(self, hotkey: str, sha256: str, now: datetime) -> KeptFile:
        if (already := await self.kept(sha256)) is not None:
            return already
        async with self._engine.connect() as connection:
            found = await self._on_the_way(connection, hotkey, now)
        row = await self._whole([row for (sha, _), row in found.items() if sha == sha256])
        lengths = part_lengths(row.bytes, row.part_bytes)
        object_id = uuid4()
        digest, size = await keep_all(self._parts, row.upload_id, object_id, lengths)
        if (digest, size) != (sha256, row.bytes):
            await remove_kept(self._parts, object_id, len(lengths))
            # A store that copied them would go on showing them as parts that have come.
            await remove_uploaded(self._parts, row.upload_id, len(lengths))
            raise Refusal(Code.INVALID_FILE, f"the bytes that came have the SHA-256 {digest}")
        values = {
            "sha256": bytes.fromhex(sha256),
            "bytes": row.bytes,
            "part_bytes": row.part_bytes,
            "object_id": object_id,
            "hotkey": hotkey,
            "checked_at": now,
        }
        statement = insert(artefact_files).values(values).on_conflict_do_nothing()
        async with self._engine.begin() as connection:
            stored = (await connection.execute(statement)).rowcount
        if not stored:  # another process was first, with the same bytes
            await remove_kept(self._parts, object_id, len(lengths))
        kept = await self.kept(sha256)
        assert kept is not None
        return kept

    async def _whole(self, rows: list[_Open]) -> _Open:
        """The upload whose parts have all come: of one file with several lengths, the right one."""
        if not rows:
            raise Refusal(Code.ARTIFACT_NOT_FOUND, "no such file is on its way: ask for its links")
        for row in rows:
            lengths = part_lengths(row.bytes, row.part_bytes)
            there = await self._there(row.upload_id, lengths)
            if len(there) == len(lengths):
                return row
        lacking = next(n for n in range(len(lengths)) if n not in there)
        raise Refusal(Code.ARTEFACT_INCOMPLETE, f"part {lacking} of {len(lengths)} is missing")

    async def _on_the_way(
        self, connection: AsyncConnection, hotkey: str, now: datetime
    ) -> dict[tuple[str, int], _Open]:
        """What a hotkey began within the time that it has, and is not stored by now."""
        up, files = artefact_uploads.c, artefact_files.c
        query = (
            select(up.sha256, up.upload_id, up.bytes, up.part_bytes)
            .outerjoin(artefact_files, files.sha256 == up.sha256)
            .where(up.hotkey == hotkey, up.begun_at > now - UPLOAD_LASTS, files.sha256.is_(None))
            .order_by(up.begun_at, up.upload_id)
        )
        rows = (await connection.execute(query)).all()
        return {
            (row.sha256.hex(), row.bytes): _Open(row.upload_id, row.bytes, row.part_bytes)
            for row in rows
        }

    async def _check_quota(
        self,
        connection: AsyncConnection,
        hotkey: str,
        found: dict[tuple[str, int], _Open],
        fresh: list[ArtefactFile],
    ) -> None:
        if len(found) + len(fresh) > MOST_UPLOADS:
            raise Refusal(
                Code.ARTEFACT_QUOTA,
                f"this hotkey has {len(found)} files on their way; {MOST_UPLOADS} are allowed",
            )
        query = select(func.coalesce(func.sum(artefact_files.c.bytes), 0)).where(
            artefact_files.c.hotkey == hotkey
        )
        stored = int(await connection.scalar(query) or 0)
        coming = sum(row.bytes for row in found.values()) + sum(file.bytes for file in fresh)
        quota = self._settings.artefact_quota_bytes
        if stored + coming > quota:
            raise Refusal(
                Code.ARTEFACT_QUOTA,
                f"this hotkey stores {stored:,} bytes of artefacts and would send {coming:,} more;"
                f" {quota:,} are allowed",
            )

    async def _state(self, row: _Open, file: ArtefactFile) -> FileUpload:
        lengths = part_lengths(row.bytes, row.part_bytes)
        there = await self._there(row.upload_id, lengths)
        return FileUpload(row.upload_id, file, tuple(lengths), there)

    async def _there(self, upload_id: UUID, lengths: list[int]) -> frozenset[int]:
        asking = asyncio.Semaphore(_ASKED_AT_ONCE)

        async def is_there(number: int) -> bool:
            async with asking:
                return await self._parts.size(upload_part(upload_id, number)) == lengths[number]

        found = await asyncio.gather(*(is_there(number) for number in range(len(lengths))))
        return frozenset(number for number, there in enumerate(found) if there)

    async def _sweep(self, now: datetime) -> None:
        """Forget the parts of every upload whose time is over, whoever began it."""
        there = await self._parts.uploads()
        if not there:
            return
        up = artefact_uploads.c
        # Asked after the look: an upload has its row before it has a part.
        query = select(up.upload_id).where(
            up.upload_id.in_(there), up.begun_at > now - UPLOAD_LASTS
        )
        async with self._engine.connect() as connection:
            alive = set(await connection.scalars(query))
        for upload_id in set(there) - alive:
            await self._parts.forget(upload_id)
