"""What a miner is shown: submissions, refusals, how far a version is, problem by problem.

All of it came over a network and names text of strangers: it is shown escaped and bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rich.table import Table

from arena.submissions.logs_show import key_of, reason_of
from sandbox.terminal import console, plain
from scoring.types import JsonObject

if TYPE_CHECKING:
    from arena.client.exceptions import RefusedError
    from arena.client.miner import Submitted

_MAX_ROWS = 200
_MAX_REASON = 160
ENDED = frozenset({"DISCARDED", "CANCELLED"})
SAID = {
    "RECEIVED": "admitted; evaluations open soon",
    "QUEUED": "waiting for a validator",
    "RUNNING": "validators are at work on it",
    "ELIGIBLE": "qualified; it may race",
    "DISCARDED": "out: it did not qualify, or is disqualified",
    "CANCELLED": "out: the hotkey left, or nobody could evaluate it",
}


def when(moment: datetime, now: datetime) -> str:
    """A time of the arena's, and how long that is from now."""
    left = max(timedelta(0), moment - now)
    hours, rest = divmod(int(left.total_seconds()), 3_600)
    minutes, seconds = divmod(rest, 60)
    span = f"{hours} h {minutes:02} min" if hours else f"{minutes} min {seconds:02} s"
    return f"{moment.astimezone(UTC):%F %T} UTC (in {span})"


def show_submitted(done: Submitted, now: datetime) -> None:
    """A submission that was taken in."""
    number = f", version {done.number}" if done.number is not None else ""
    console.print(f"[green]submitted[/] {done.version_id}{number}", soft_wrap=True)
    if done.next_allowed_at is not None:
        console.print(f"the next submission: {when(done.next_allowed_at, now)}", soft_wrap=True)
    console.print(f"follow it: arena agent status {done.version_id} --watch", soft_wrap=True)


def show_refusal(error: RefusedError, file: str, now: datetime) -> None:
    """Why a submission was refused: each violation with its place, or when the wait is over."""
    from arena.client.miner import moment

    console.print(f"[red]refused[/] {plain(file)}: {plain(error.message)}", soft_wrap=True)
    violations = error.body.get("violations")
    for entry in violations[:_MAX_ROWS] if isinstance(violations, list) else ():
        if isinstance(entry, dict):
            _show_violation(entry, file)
    more = error.body.get("more")
    if isinstance(more, int) and more > 0:
        console.print(f"  and {more} more places that are not told", soft_wrap=True)
    ends_at = moment(error.body.get("next_allowed_at"))
    if ends_at is not None:
        console.print(f"  submit again: {when(ends_at, now)}", soft_wrap=True)
    if error.remedy:
        console.print(f"  to mend it: {plain(error.remedy)}", soft_wrap=True)


def _show_violation(entry: JsonObject, file: str) -> None:
    line = entry.get("line")
    place = f"{file}:{line}" if isinstance(line, int) and line > 0 else file
    rule = plain(str(entry.get("rule", entry.get("code", ""))), 60)
    said = plain(str(entry.get("message", "")), 300)
    console.print(f"  {plain(place)} [bold]{rule}[/] {said}", soft_wrap=True)
    found, fix = str(entry.get("found", "") or ""), str(entry.get("fix", "") or "")
    if found:
        console.print(f"    found: {plain(found, 200)}", soft_wrap=True)
    if fix:
        console.print(f"    to mend it: {plain(fix, 300)}", soft_wrap=True)


def show_status(status: JsonObject, rank: int | None) -> None:
    """How far one version is."""
    state = str(status.get("state", ""))
    console.print(
        f"[bold]{plain(str(status.get('agent_name', '')), 100)}[/]"
        f" version {plain(str(status.get('version_number', '?')), 20)}:"
        f" [bold]{plain(state, 40)}[/] {SAID.get(state, '')}",
        soft_wrap=True,
    )
    for label, key in (
        ("qualifying score", "final_score"),
        ("race score", "race_score"),
        ("disqualified", "disqualified_reason"),
        ("out since", "eliminated_at"),
        ("code public from", "code_available_at"),
    ):
        value = status.get(key)
        if value is not None:
            shown = f"{value:.4f}" if isinstance(value, float) else plain(str(value), 200)
            console.print(f"  {label}: {shown}", soft_wrap=True)
    done, needed = status.get("success_count"), status.get("required_successes")
    if state in ("QUEUED", "RUNNING") and isinstance(done, int) and isinstance(needed, int):
        console.print(f"  validators done: {done} of {needed}", soft_wrap=True)
    if rank is not None:
        champion = ", the champion" if status.get("is_champion") is True else ""
        console.print(f"  [green]rank {rank}[/]{champion}", soft_wrap=True)


def show_problems(
    evaluations: Sequence[dict[str, Any]], logs: Sequence[dict[str, Any]] = ()
) -> None:
    """How each problem went, and why where `logs` say it. The text of held-out problems stands
    in neither."""
    reasons = {key_of(log, log.get("evaluation_id")): reason_of(log) for log in logs}
    for evaluation in evaluations:
        problems = evaluation.get("problems")
        rows = [p for p in problems if isinstance(p, dict)] if isinstance(problems, list) else []
        if not rows:
            continue
        over = "" if evaluation.get("over") is True else " (scores when it is over)"
        table = Table("problem", "category", "validator", "status", "score", "quality", "reason")
        table.title = f"{plain(str(evaluation.get('phase', '')), 40)}{over}"
        for row in rows[:_MAX_ROWS]:
            table.add_row(
                plain(str(row.get("problem_id", ""))[:8], 8),
                plain(str(row.get("category") or ""), 20),
                plain(str(row.get("validator_hotkey", ""))[:8], 8),
                plain(str(row.get("status", "")), 20),
                _number(row.get("score")),
                _number(row.get("reasoning_quality")),
                plain(
                    reasons.get(key_of(row, evaluation.get("evaluation_id")))
                    or str(row.get("failure") or ""),
                    _MAX_REASON,
                ),
            )
        console.print(table)
        if len(rows) > _MAX_ROWS:
            console.print(f"  and {len(rows) - _MAX_ROWS} more: --json has them", soft_wrap=True)


def show_versions(rows: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Versions of all agents."""
    table = Table("agent", "version", "state", "qualifying", "submitted", "id")
    for name, row in rows:
        table.add_row(
            plain(name, 60),
            plain(str(row.get("version_number", "")), 10),
            plain(str(row.get("state", "")), 20),
            _number(row.get("final_score")),
            plain(str(row.get("submitted_at", ""))[:19], 19),
            plain(str(row.get("agent_version_id", "")), 36),
        )
    console.print(table)


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) and value is not True else ""


def ranked(status: JsonObject, rank: int | None) -> bool:
    """Whether there is nothing more to wait for: it is out, or has raced and has a place."""
    if str(status.get("state")) in ENDED or status.get("eliminated_at") is not None:
        return True
    return rank is not None and status.get("race_score") is not None


def rank_of(leaderboard: JsonObject, version: str) -> int | None:
    """The place of a version on the board; None when it has none."""
    entries = leaderboard.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("agent_version_id") == version:
            rank = entry.get("rank")
            return rank if isinstance(rank, int) else None
    return None
