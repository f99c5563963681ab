"""What a validator leaves with each problem of a run, for people: how it ended, and its log.

Nothing is decided by it. What cannot be left is left out, and told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import structlog

from arena.client.backoff import Backoff
from arena.client.exceptions import ArenaApiError, RefusedError
from arena.client.validator import ValidatorClient
from arena.races.race import RaceSink
from arena.runs.record import EncodedRecord, RunSummary
from neurons.validating.heartbeat import LOST

_log = structlog.get_logger(__name__)

_PATIENCE: Final = Backoff(first_s=2.0, longest_s=30.0, tries=3)
_FIELDS: Final = ("run_id", "attempt", "closed", "failure", "notes", "log_tail", "timing", "axis")


def log_file(record: EncodedRecord) -> bytes:
    """The file of one problem: JSON, from its record. It holds no reward and no trace."""
    value: dict[str, Any] = dict(record.value)
    outcome = value.get("outcome")
    kept = {name: value.get(name) for name in _FIELDS}
    kept["problem_id"] = value["problem"]["problem_id"]
    kept["outcome"] = outcome
    return json.dumps(kept, ensure_ascii=True, separators=(",", ":")).encode()


async def leave_logs(
    client: ValidatorClient, run: UUID, sink: RaceSink, done: Sequence[RunSummary]
) -> int:
    """Leave a file with each problem; how many were. Raises RefusedError when the run is lost."""
    left = 0
    for summary in done:
        try:
            body = await asyncio.to_thread(log_file, await sink.read(summary.run_id))
            link = await client.presign(run, summary.problem_id, len(body), backoff=_PATIENCE)
            await client.session.upload(link.url, body, backoff=_PATIENCE)
        except RefusedError as error:
            if error.error_code in LOST:
                raise
            _log.warning("a log is not left", run=str(run), code=error.code, error=str(error))
        except ArenaApiError as error:
            _log.warning("logs are not left", run=str(run), code=error.code, error=str(error))
            break
        else:
            left += 1
    return left
