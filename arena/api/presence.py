"""Which validators ask for work and get none: where seats are fewer than validators, some do.

A validator that only copies weights does not ask. One that asks is given work whenever there
is any, and has to do it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from arena.api.ticks import last_tick, last_ticks, tick

NOTED_EVERY = timedelta(minutes=1)
"""Validators ask twice a minute; that they do need not be written down each time."""
PRESENT = timedelta(hours=1)
"""Who asked within it is there."""
_VALIDATOR = "validator "


class Presence:
    """Notes who asked in vain. One an app: others' notes are in the same table."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._noted: dict[str, datetime] = {}
        """By hotkey of a permitted validator: as many as the subnet has permits."""

    async def asked(self, hotkey: str, now: datetime) -> None:
        """A validator asked for work, and there was none for it. Driver errors pass through."""
        noted = self._noted.get(hotkey)
        if noted is not None and noted <= now < noted + NOTED_EVERY:
            return
        await tick(self._engine, _process(hotkey), now)
        self._noted[hotkey] = now


async def is_present(connection: AsyncConnection, hotkey: str, now: datetime) -> bool:
    """Whether a validator asked for work of late."""
    at = await last_tick(connection, _process(hotkey))
    return at is not None and at > now - PRESENT


async def last_asked(connection: AsyncConnection) -> dict[str, datetime]:
    """When each validator that ever asked in vain did so last, by its hotkey."""
    ticks = await last_ticks(connection, _VALIDATOR)
    return {process.removeprefix(_VALIDATOR): at for process, at in ticks.items()}


def _process(hotkey: str) -> str:
    return _VALIDATOR + hotkey
