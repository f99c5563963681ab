"""A conductor that dies: whatever it does, only so many of its writes come through."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncEngine

from arena.conducting.conductor import Conductor
from arena.conducting.work import Done
from tests.unit.arena.conducting.world import World

_COUNTED = ("journal", "races", "race_secrets", "work_history", "log_heads", "head_commitments")
_COUNTS = text("SELECT " + ", ".join(f"(SELECT count(*) FROM {name})" for name in _COUNTED))
_WRITES = ("INSERT", "UPDATE", "DELETE")


class Killed(BaseException):
    """As kill -9: nobody catches it, and what is not committed is gone."""


class Mortal:
    """Kills at the first write beyond a budget, before it is committed."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.budget: int | None = None
        """Writes that still come through; None: all."""
        self.deaths = 0
        event.listen(engine.sync_engine, "before_cursor_execute", self._executes)
        event.listen(engine.sync_engine, "commit", self._commits)
        event.listen(engine.sync_engine, "rollback", self._rolls_back)

    def writes(self) -> None:
        """Something is about to be written for good."""
        if self.budget is None:
            return
        if self.budget == 0:
            self.deaths += 1
            raise Killed
        self.budget -= 1

    def _executes(self, connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(_WRITES):
            connection.info["wrote"] = True

    def _commits(self, connection: Any) -> None:
        if connection.info.pop("wrote", False):
            self.writes()

    def _rolls_back(self, connection: Any) -> None:
        connection.info.pop("wrote", None)


class MortalWorld(World):
    """Every look is made by conductors of which each brings one write about, dies at the
    next, and is followed by one that knows nothing of it."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self.mortal = Mortal(engine)
        self.chain.wrote = self.mortal.writes

    async def look(self) -> list[Done]:
        lives, before = 1, await self._stored()
        while True:
            self.mortal.budget = lives
            try:
                return await self.conductor.step(self.now)
            except Killed:
                self.conductor = Conductor(self.parts)
            finally:
                self.mortal.budget = None
            after = await self._stored()
            # What is written again and was there costs a write, and brings nothing on.
            lives, before = (lives + 1 if after == before else 1), after

    async def _stored(self) -> tuple[object, ...]:
        async with self.engine.connect() as connection:
            return tuple((await connection.execute(_COUNTS)).one())
