"""Whether a submitted file may race: all rules together, with a reason for each no.

The gate is a filter; the sandbox is the wall. What passes here has been read, not trusted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import Copied, CopyIndex
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.form import name_violations
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from arena.submissions.reading import Reading
from arena.submissions.rules import Json, Rule, Violation, violation

MAX_SHOWN_LINES = 8
_COPY_RULES = {"code": Rule.COPIED_CODE, "prose": Rule.COPIED_TEXT}


@dataclass(frozen=True, slots=True)
class Admission:
    """The verdict on one file.

    `fingerprint` is what to add to the index of copies when it is admitted; None when the
    file could not be parsed.
    """

    name: str
    sha256: str
    violations: tuple[Violation, ...]
    copies: tuple[Copied, ...] = ()
    fingerprint: Fingerprint | None = None

    @property
    def admitted(self) -> bool:
        """Whether no rule was broken."""
        return not self.violations

    def to_json(self) -> dict[str, Json]:
        """The form of `--json` and of the API. Holds text of the file: show it escaped."""
        return {
            "name": self.name.encode("utf-8", "replace").decode("utf-8"),
            "sha256": self.sha256,
            "admitted": self.admitted,
            "violations": [entry.to_json() for entry in self.violations],
            "copies": [
                {
                    "version": copy.version,
                    "what": copy.what,
                    "of_theirs": copy.of_theirs,
                    "of_mine": copy.of_mine,
                    "lines": [[first, last] for first, last in copy.lines],
                }
                for copy in self.copies
            ],
        }


def check(
    source: bytes,
    *,
    name: str,
    policy: Policy,
    known: CopyIndex | None = None,
    bank: AnswerIndex | None = None,
    hotkey: str | None = None,
    reader: Reader | None = None,
) -> Admission:
    """Check one file against the rules, the bank's problems and earlier submissions.

    Any bytes give a verdict, and the same arguments the same one. `hotkey` is the
    submitter's, whose own earlier versions are no copies. `reader` is the process to read
    with; without one a process is started for this file. Raises AdmissionError (the
    validator's fault) only when no process can be started or the machine is too busy.
    """
    if reader is None:
        with Reader() as own:
            reading = own.read(source, policy)
    else:
        reading = reader.read(source, policy)
    return judge(reading, source, name=name, policy=policy, known=known, bank=bank, hotkey=hotkey)


def judge(
    reading: Reading,
    source: bytes,
    *,
    name: str,
    policy: Policy,
    known: CopyIndex | None = None,
    bank: AnswerIndex | None = None,
    hotkey: str | None = None,
) -> Admission:
    """As `check`, of a file that was read already: against other indices it is judged anew."""
    digest = hashlib.sha256(source).hexdigest()
    violations = [*name_violations(name, policy), *reading.violations]
    if bank is not None:
        violations += bank.violations(reading)
    copies: tuple[Copied, ...] = ()
    if known is not None:
        twin = known.identical(digest, hotkey)
        if twin is not None:
            violations.append(violation(Rule.IDENTICAL, 0, 0, f"the file of {twin}"))
        if reading.fingerprint is not None:
            copies = known.copied(reading.fingerprint, policy, hotkey)
            violations += map(_copied, copies)
    ordered = sorted(dict.fromkeys(violations), key=lambda v: (v.line, v.column, v.rule, v.found))
    return Admission(name, digest, tuple(ordered), copies, reading.fingerprint)


def _copied(copy: Copied) -> Violation:
    lines = ", ".join(f"{a}-{b}" if b > a else str(a) for a, b in copy.lines[:MAX_SHOWN_LINES])
    more = ", …" if len(copy.lines) > MAX_SHOWN_LINES else ""
    told = (
        f"{copy.of_theirs:.0%} of {copy.version} stands here, {copy.of_mine:.0%} of this file"
        f" there; lines {lines}{more}"
    )
    line = copy.lines[0][0] if copy.lines else 0
    return violation(_COPY_RULES[copy.what], line, 0, told)
