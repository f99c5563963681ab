"""A run before the judge: its verdict, its coefficient and its final score, or *unjudged*.

What is judged is the trace as the record holds it, not as it was in memory: whoever
reads the record finds every citation where the verdict says it stands.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import cast

import structlog

from arena.exceptions import ErrorInfo, Fault
from arena.runs.canonical import canonical
from arena.runs.record import EncodedRecord, RunRecord
from arena.runs.verdicts import VerdictRecord
from judge.judging import Judge
from judge.prompts import PROMPT_VERSION
from judge.settings import JudgeSettings
from judge.verdict import Judgement, Unjudged, Verdict
from sandbox.models import ModelClient
from sandbox.trace import Trace
from scoring.coefficient import coefficient
from scoring.types import Json, JsonObject

_log = structlog.get_logger(__name__)

GIVE_UP_AFTER = 8
"""Judgements in a row that every model failed: from then on nobody is asked, until the
race is started again. Each would wait out all its tries."""
GIVEN_UP = "judge.given_up"
UNEXPECTED = "platform.unexpected"


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judgement makes of a run. All None but `unjudged` when there is no verdict."""

    verdict: JsonObject | None
    unjudged: JsonObject | None
    coefficient: float | None
    final_score: float | None
    standins: tuple[str, ...]


class RunJudge:
    """Judges runs for as long as a world is open. For many tasks of one event loop."""

    def __init__(
        self,
        client: ModelClient,
        settings: JudgeSettings,
        server: str,
        *,
        give_up_after: int = GIVE_UP_AFTER,
    ) -> None:
        """`server` names who answers for the models. Raises JudgeError (CALLER)."""
        self._client, self._settings, self._server = client, settings, server
        self._judge = Judge(client, settings)
        self._standins = frozenset(
            model
            for model in self._judge.models
            if any(route.standin for route in client.routes(model))
        )
        self._failed_in_a_row = 0
        self._give_up_after = give_up_after
        self.concurrency = settings.concurrency
        self.conditions: JsonObject = {
            "server": server,
            "models": list(self._judge.models),
            "prompt": PROMPT_VERSION,
            "panel": settings.panel,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
            "trace_tokens": settings.trace_tokens,
        }
        """Everything that decides a verdict besides the trace."""

    def renewed(self) -> RunJudge:
        """The same judge with a fresh purse and a fresh count of failures, for a process that
        outlives a race. The connections are shared."""
        return RunJudge(
            self._client, self._settings, self._server, give_up_after=self._give_up_after
        )

    @property
    def name(self) -> str:
        """The judge for people."""
        return ", ".join(self._judge.models)

    @property
    def is_standin(self) -> bool:
        """Whether rules judge, and no model."""
        return bool(self._standins)

    async def judged(self, record: RunRecord, query: str) -> RunRecord:
        """The closed record with its verdict, or with the reason why it has none."""
        trace = await asyncio.to_thread(lambda: json.loads(canonical(record.trace)))
        dialogue: list[Json] | None = None if record.dialogue is None else [*record.dialogue]
        success = bool(record.outcome and record.outcome["success"])
        found = await self._judged(trace, dialogue, query, success=success)
        conditions = replace(
            record.conditions,
            judge=self.conditions,
            standins=tuple(sorted({*record.conditions.standins, *found.standins})),
        )
        return replace(
            record,
            conditions=conditions,
            verdict=found.verdict,
            unjudged=found.unjudged,
            coefficient=found.coefficient,
            final_score=found.final_score,
        )

    async def judged_later(self, record: EncodedRecord, query: str) -> VerdictRecord | None:
        """The verdict on a stored record, as a record of its own; None: still unjudged."""
        value = await asyncio.to_thread(lambda: record.value)
        outcome = cast("JsonObject | None", value["outcome"])
        found = await self._judged(
            cast("JsonObject", value["trace"]),
            cast("list[Json] | None", value["dialogue"]),
            query,
            success=bool(outcome and outcome["success"]),
        )
        if found.verdict is None or found.coefficient is None or found.final_score is None:
            return None
        return VerdictRecord(
            run_id=cast("str", value["run_id"]),
            race_id=cast("str | None", value["race_id"]),
            record_hash=record.hash,
            judged_at=datetime.now(UTC).isoformat(),
            judge=self.conditions,
            standins=found.standins,
            verdict=found.verdict,
            coefficient=found.coefficient,
            final_score=found.final_score,
        )

    async def _judged(
        self, trace: JsonObject, dialogue: list[Json] | None, query: str, *, success: bool
    ) -> Judged:
        judgement = await self._ask(trace, dialogue, query)
        if isinstance(judgement, Unjudged):
            return Judged(None, judgement.to_json(), None, None, ())
        worth = coefficient(judgement.quality)
        standins = tuple(f"judge:{name}" for name in judgement.judges if name in self._standins)
        return Judged(judgement.to_json(), None, worth, float(success) * worth, standins)

    async def _ask(self, trace: JsonObject, dialogue: list[Json] | None, query: str) -> Judgement:
        if self._failed_in_a_row >= self._give_up_after:
            message = (
                f"the judge failed {self._give_up_after} times in a row and is not asked again"
            )
            return Unjudged(ErrorInfo(GIVEN_UP, Fault.VALIDATOR, message))
        try:
            read = await asyncio.to_thread(Trace.from_json, trace)
            judgement = await self._judge.judge(read, query, dialogue)
        except Exception as error:  # noqa: BLE001 - nor does a bug here cost a run its outcome
            # The trace is kept, to be judged later.
            _log.exception("a run could not be judged")
            said = f"{type(error).__name__}: {error}"[:500]
            return Unjudged(ErrorInfo(UNEXPECTED, Fault.PLATFORM, said))
        if isinstance(judgement, Verdict):
            self._failed_in_a_row = 0
        elif all(code.startswith("model.") for code in judgement.failures):
            # Only providers: what a trace talks a model into must not keep others unjudged.
            self._failed_in_a_row += 1
        return judgement
