"""Whose doing a hard stop was."""

from __future__ import annotations

import pytest

from arena.runs.patience import asked_for_s
from sandbox.exceptions import ErrorInfo, Fault
from sandbox.trace import LlmEvent, Trace, Usage
from scoring.types import JsonObject

OURS = ErrorInfo("model.unavailable", Fault.VALIDATOR, "no")
THEIRS = ErrorInfo("model.fails_on_request", Fault.AGENT, "no")


def call(
    waited_s: float,
    usage: Usage | None = None,
    status: int = 200,
    error: ErrorInfo | None = None,
    params: JsonObject | None = None,
) -> LlmEvent:
    ms = waited_s * 1000
    return LlmEvent(
        0, 0.0, ms, ms, "m", "s", standin=False, prompt=(), params=params or {}, status=status,
        usage=usage, error=error,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("event", "asked_for"),
    [
        (call(40, Usage(100, 2000)), 40.0),  # 50 tokens a second: a sound provider
        (call(40, Usage(0, 20)), 5.0),  # half a token a second: a slow one
        (call(40, Usage(5000, 0)), 13.0),
        (call(300, status=502, error=OURS), 0.0),
        (call(450, status=400, error=THEIRS), 450.0),
        (call(300, status=499, error=THEIRS), 300.0),
        (call(300, status=499, error=THEIRS, params={"max_tokens": 100}), 13.0),
        (call(900, status=499, error=THEIRS, params={"max_tokens": 10**6}), 412.6),
        (call(0, status=429, error=THEIRS), 0.0),
    ],
)
def test_what_a_sound_provider_would_have_taken(event: LlmEvent, asked_for: float) -> None:
    assert asked_for_s(Trace(events=(event,))) == pytest.approx(asked_for)
