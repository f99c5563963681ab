"""Why a submission is refused: exceptions with stable codes, and what is told of findings.

The gate knows the answers of held-out problems. Told in full, its findings would be an
oracle: a file with a thousand numbers would come back with those that answer a problem. So
of what it found by the bank a submitter is told one place of each rule, and such a refusal
costs the cooldown; everything that was found is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from arena.exceptions import ArenaError, Fault
from arena.submissions.agent_name import name_fault, stored_name
from arena.submissions.rules import Rule, Violation

BANK_RULES = frozenset({Rule.PRODUCT_ID, Rule.QUERY, Rule.TITLE})
"""Rules that compare a file with the bank's problems, held-out ones among them."""
MAX_TOLD = 100
"""More places mend nothing that these do not."""


class SubmissionError(ArenaError):
    """A submission that is not taken in."""

    code = "submission.refused"
    fault = Fault.CALLER


class BadNameError(SubmissionError):
    """A name that no agent may have."""

    code = "submission.bad_name"


class BadSourceError(SubmissionError):
    """A file that is none: empty, or larger than allowed."""

    code = "submission.bad_file"

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large


class CooldownError(SubmissionError):
    """Too soon after the hotkey's last submission. `ends_at` is when the wait is over."""

    code = "submission.cooldown"

    def __init__(self, message: str, *, ends_at: datetime) -> None:
        super().__init__(message, remedy=f"submit again after {ends_at:%F %T} UTC")
        self.ends_at = ends_at


class TooManyRefusalsError(SubmissionError):
    """So many refused files of a hotkey within an hour that no more are read for it."""

    code = "submission.too_many_refusals"

    def __init__(self, message: str, *, ends_at: datetime) -> None:
        super().__init__(message, remedy="arena agent check FILE says the same, and has no limit")
        self.ends_at = ends_at


class SubmissionsPausedError(SubmissionError):
    """An operator has paused submissions."""

    code = "submission.paused"
    fault = Fault.PLATFORM


@dataclass(frozen=True, slots=True)
class Told:
    """What a submitter is told of findings."""

    violations: tuple[Violation, ...]
    more: int
    """How many places are left out. Of the bank's rules none is counted: a number says how many
    of a file's guesses are answers."""


class GateError(SubmissionError):
    """A file that breaks the gate's rules. `cooldown_until` is set when it cost the cooldown."""

    code = "submission.gate"

    def __init__(self, found: Sequence[Violation], *, cooldown_until: datetime | None) -> None:
        self.told = told(found)
        first = self.told.violations[0]
        place = f"line {first.line}: " if first.line else ""
        count = len(self.told.violations)
        others = f" (and {count - 1} more)" if count > 1 else ""
        super().__init__(f"{place}{first.rule}: {first.why}{others}", remedy=first.fix)
        self.cooldown_until = cooldown_until


def told(found: Sequence[Violation]) -> Told:
    """What may be said: all that follows from the file alone, one place of a bank's rule."""
    shown: list[Violation] = []
    seen: set[Rule] = set()
    for violation in found:
        if violation.rule in BANK_RULES and violation.rule in seen:
            continue
        seen.add(violation.rule)
        shown.append(violation)
    return Told(tuple(shown[:MAX_TOLD]), len(shown[MAX_TOLD:]))


def knows_answers(found: Sequence[Violation]) -> bool:
    """Whether any of it was found by the bank's problems."""
    return any(violation.rule in BANK_RULES for violation in found)


def checked_name(name: str, limit: int) -> str:
    """An agent's name in its stored form. Raises BadNameError for one that no agent may have."""
    fault = name_fault(name, limit)
    if fault is not None:
        raise BadNameError(fault)
    return stored_name(name)
