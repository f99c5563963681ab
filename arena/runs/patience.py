"""Whose doing a hard stop was: a slow provider's, or an agent's that asked for so much.

Time that a model provider takes is excused, so an agent that keeps its calls going
reaches the hard stop without using up its own time. Were that always the validator's
fault, any run that goes badly could be turned into one that is repeated. What was
waited for decides: a provider that was no slower than the slowest sound one has done
nothing wrong. Pure.
"""

from __future__ import annotations

from typing import Final

from sandbox.exceptions import Fault
from sandbox.gateway.answers import STATUS_RUN_ENDED
from sandbox.gateway.limits import RESERVED_TOKENS
from sandbox.trace import LlmEvent, Trace

CALL_S: Final = 3.0
"""Connection, queue and first token of one call at a slow but sound provider."""
PROMPT_TOKENS_A_SECOND: Final = 500.0
COMPLETION_TOKENS_A_SECOND: Final = 10.0


def asked_for_s(trace: Trace) -> float:
    """Seconds that a slow but sound provider would have taken for the calls of a run.

    At least what was waited for exactly when no call was slower than that.
    """
    return sum(_asked_for_s(event) for event in trace.llm())


def _asked_for_s(event: LlmEvent) -> float:
    waited_s = event.waited_ms / 1000.0
    if event.error is not None and event.error.fault is not Fault.AGENT:
        return 0.0
    if event.usage is not None:
        prompt, completion = event.usage.prompt_tokens, event.usage.completion_tokens
    elif event.status != STATUS_RUN_ENDED:  # refused because of what it asked
        return waited_s
    else:  # still going on at the end of the run
        prompt, completion = 0, _most_tokens(event)
    due = prompt / PROMPT_TOKENS_A_SECOND + completion / COMPLETION_TOKENS_A_SECOND
    return min(waited_s, CALL_S + due)


def _most_tokens(event: LlmEvent) -> int:
    """Completion tokens that a call without an answer may have been writing."""
    limits = [event.params.get(name) for name in ("max_completion_tokens", "max_tokens")]
    stated = [limit for limit in limits if isinstance(limit, int)]
    return min(stated[0], RESERVED_TOKENS) if stated else RESERVED_TOKENS
