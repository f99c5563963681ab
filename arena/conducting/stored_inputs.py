"""What an evaluation was going to be run on, when the calendar was killed while opening it.

Inputs are stored before the evaluation is opened. Pools move on meanwhile, so who opens it
again takes what is stored and chooses nothing anew.
"""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from sqlalchemy import exists, select

from arena.conducting.parts import Parts
from arena.db import schema
from scoring.reading import read_problem
from scoring.types import Problem


async def registered(parts: Parts, evaluation_id: UUID) -> list[Problem] | None:
    """The problems of an evaluation whose inputs are stored; None when they are not."""
    stored = exists().where(schema.races.c.race_id == str(evaluation_id))
    async with parts.engine.connect() as connection:
        if not await connection.scalar(select(stored)):
            return None
    inputs = await parts.inputs.inputs(evaluation_id)
    return [read_problem(content) for _, content in await parts.inputs.problems(inputs)]


def suite_number(day: datetime) -> int:
    """The number that the SDK's models want of a set of problems: its date, such as 20261120."""
    return int(f"{day.astimezone(UTC):%Y%m%d}")
