"""What a miner is shown of its agent's runs: why each went as it did, and the agent's log.

All of it was written by agents, models and strangers' machines: escaped and bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.terminal import console, plain

MAX_LINES = 200
"""Lines of one log that are shown; `--json` has all."""
_MAX_LINE = 500
GATES = {
    "inference": "no model call of 30 tokens or more",
    "reference": "no thinking refers to what tools returned",
    "datum": "names no datum of what tools returned",
    "comparison": "compares no candidates",
    "passed": "compares candidates with a reason",
}
WITHHELD = {
    "held_out": "its text is withheld: the problem is still raced",
    "racing": "its text is withheld: a race on it is not over",
    "unknown_problem": "its text is withheld: the bank does not know the problem",
}


def key_of(row: dict[str, Any], evaluation: object) -> tuple[str, str, str]:
    """Which problem of which evaluation by whom."""
    return str(evaluation), str(row.get("problem_id")), str(row.get("validator_hotkey"))


def reason_of(log: dict[str, Any]) -> str:
    """In one line why a problem went as it did, still as hostile as it came."""
    parts = []
    failure = log.get("failure")
    if isinstance(failure, dict):
        parts.append(_told(failure))
    elif isinstance(log.get("outcome"), str):
        parts.append(log["outcome"])
    unjudged = log.get("unjudged")
    if isinstance(unjudged, dict):
        parts.append(f"unjudged ({_told(unjudged)})")
    elif isinstance(log.get("gate"), str):
        parts.append(f"judge: {GATES.get(log['gate'], log['gate'])}")
    return "; ".join(parts)


def show_log(log: dict[str, Any]) -> None:
    """One problem: how it went, why, where the judge's reason stands, and the end of the log."""
    ended = "success" if log.get("success") is True else "failed"
    quality = log.get("reasoning_quality")
    console.print(
        f"[bold]{plain(str(log.get('problem_id', '')), 40)}[/]"
        f" {plain(str(log.get('phase', '')), 20)}"
        f" by {plain(str(log.get('validator_hotkey', ''))[:8], 8)}: {ended},"
        f" score {_number(log.get('score'))}, quality {_number(quality)},"
        f" axis {plain(str(log.get('axis') or '?'), 3)}",
        soft_wrap=True,
    )
    if reason := reason_of(log):
        console.print(f"  {plain(reason, 2_000)}", soft_wrap=True)
    axes = log.get("axes")
    if isinstance(axes, dict) and axes:
        shares = ", ".join(f"{name} {_number(share)}" for name, share in axes.items())
        console.print(f"  constraints met: {plain(shares)}", soft_wrap=True)
    for note in _objects(log.get("notes")):
        console.print(f"  note: {plain(_told(note), 2_000)}", soft_wrap=True)
    for span in _objects(log.get("evidence")):
        place = f"event {span.get('event')} {span.get('field')}"
        console.print(
            f"  judge cites {plain(place, 120)}: {plain(str(span.get('quote')))}", soft_wrap=True
        )
    withheld = log.get("withheld")
    if withheld is not None:
        console.print(f"  {plain(WITHHELD.get(str(withheld), str(withheld)))}", soft_wrap=True)
    _show_tail(log.get("log_tail"))


def show_logs(logs: Sequence[dict[str, Any]]) -> None:
    """All of them."""
    for log in logs:
        show_log(log)
    if not logs:
        console.print("nothing yet: logs are told when an evaluation is over")


def _show_tail(tail: object) -> None:
    if not isinstance(tail, str) or not tail:
        return
    lines = tail.splitlines()
    if len(lines) > MAX_LINES:
        console.print(f"  │ … {len(lines) - MAX_LINES} lines before: --json has them")
    for line in lines[-MAX_LINES:]:
        # A bar before each: no line of an agent's passes for one of ours.
        console.print(f"  │ {plain(line, _MAX_LINE)}", soft_wrap=True)


def _told(error: dict[str, Any]) -> str:
    message = error.get("message")
    said = f": {message}" if isinstance(message, str) and message else ""
    return f"{error.get('code')}{said}"


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: object) -> str:
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:.2f}" if known else "none"
