"""What verification finds, and how it is counted. Codes are stable: people search for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

from scoring.types import Json, JsonObject

MAX_FINDINGS = 10_000
"""Findings kept in full; all are counted."""
MAX_DETAIL = 600
"""Characters of a finding's words: they may quote a hostile record."""


class Check(StrEnum):
    """What is checked, in the order in which a report lists it."""

    FILES = "files"
    SCHEMA = "schema"
    CONTENT = "content"
    SIGNATURE = "signature"
    VALIDATOR = "validator"
    CHAIN = "chain"
    RUN_IDS = "run ids"
    HEADS = "heads"
    LOG = "log"
    INCLUSION = "inclusion"
    COMMITMENT = "commitment"
    DATING = "dating"
    OUTCOME = "outcome"
    CLOSED = "closed"
    AXIS = "axis"
    SCORE = "score"
    CITATIONS = "citations"
    CEILING = "facts"
    VERDICTS = "later verdicts"


class Code(StrEnum):
    """What can be wrong."""

    # Files -------------------------------------------------------------------
    FILE_MISSING = "file.missing"
    FILE_UNREADABLE = "file.unreadable"
    FILE_DAMAGED = "file.damaged"
    FILE_CUT = "file.cut"
    FILE_CHANGED = "file.changed"
    """Another hash than the export's manifest says."""
    FILE_NOT_NAMED = "file.not_named"
    """A source or a problem that does not have the hash it is filed under."""
    # The record itself -------------------------------------------------------
    RECORD_SCHEMA = "record.schema"
    RECORD_NOT_CANONICAL = "record.not_canonical"
    RECORD_TRACE = "record.trace"
    RECORD_VERDICT = "record.verdict"
    RECORD_HASH = "record.hash"
    RECORD_SIZE = "record.size"
    RECORD_KIND = "record.kind"
    RECORD_DUPLICATE_RUN = "record.duplicate_run"
    RECORD_PROBLEM = "record.problem_other"
    """It names another problem than the one that its `content_hash` binds it to."""
    RECORD_STANDINS = "record.standins"
    """A stand-in of its trace is not named among its conditions."""
    # Its seal ----------------------------------------------------------------
    SEAL_MISSING = "seal.missing"
    SEAL_BROKEN = "seal.broken"
    SEAL_SIGNATURE = "seal.signature"
    SEAL_UNEXPECTED_VALIDATOR = "seal.unexpected_validator"
    SEAL_TWICE = "seal.record_sealed_twice"
    # The validator's chain ---------------------------------------------------
    CHAIN_GAP = "chain.gap"
    CHAIN_DUPLICATE = "chain.duplicate"
    CHAIN_ORDER = "chain.order"
    CHAIN_FORK = "chain.fork"
    CHAIN_PREVIOUS = "chain.previous"
    CHAIN_TIME_BACK = "chain.time_back"
    CHAIN_BLOCK_BACK = "chain.block_back"
    CHAIN_ANCHOR = "chain.anchor"
    # The log -----------------------------------------------------------------
    LOG_LEAF_MISSING = "log.leaf_missing"
    LOG_ORDER = "log.order"
    LOG_ROOT = "log.root"
    LOG_INCLUSION = "log.inclusion"
    LOG_NOT_IN_LOG = "log.not_in_log"
    # Its heads ---------------------------------------------------------------
    HEAD_BROKEN = "head.broken"
    HEAD_MISSING = "head.missing"
    HEAD_SIGNATURE = "head.signature"
    HEAD_OPERATOR = "head.operator"
    HEAD_TWO_FOR_A_DAY = "head.two_for_a_day"
    HEAD_PREVIOUS = "head.previous"
    HEAD_SIZE_BACK = "head.size_back"
    HEAD_TIME_BACK = "head.time_back"
    HEAD_INCONSISTENT = "head.inconsistent"
    HEAD_OTHER = "head.other"
    """Not the head that was given to check against."""
    COMMITMENT_BROKEN = "commitment.broken"
    COMMITMENT_OTHER_ROOT = "commitment.other_root"
    COMMITMENT_NOT_ON_CHAIN = "commitment.not_on_chain"
    # When --------------------------------------------------------------------
    SEAL_LATE = "seal.late"
    SEAL_BACK_DATED = "seal.back_dated"
    SEAL_AFTER_HEAD = "seal.after_head"
    SEAL_BLOCK = "seal.block"
    # Recomputed --------------------------------------------------------------
    OUTCOME_OTHER = "outcome.other"
    CLOSED_OTHER = "closed.other"
    AXIS_OTHER = "axis.other"
    SCORE_QUALITY = "score.quality"
    SCORE_COEFFICIENT = "score.coefficient"
    SCORE_FINAL = "score.final"
    CITATION_FALSE = "citation.false"
    VERDICT_ABOVE_FACTS = "verdict.above_facts"
    VERDICT_UNLINKED = "verdict.unlinked"
    VERDICT_OTHER_RECORD = "verdict.other_record"
    VERDICT_SECOND = "verdict.second"

    @property
    def is_notice(self) -> bool:
        """Worth telling, and no fault that anything proves: it fails nothing by itself."""
        return self is Code.SEAL_LATE


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold: what, where, and in plain words.

    `place` names a file and line, a record or a seal; `detail` may quote untrusted text.
    """

    code: Code
    check: Check
    place: str
    detail: str

    def to_json(self) -> JsonObject:
        """The JSON object of a report."""
        return {
            "code": self.code.value,
            "check": self.check.value,
            "notice": self.code.is_notice,
            "place": self.place,
            "detail": self.detail,
        }


@dataclass(slots=True)
class Tally:
    """How one check went: over what it could be made, and why not over the rest."""

    passed: int = 0
    failed: int = 0
    noticed: int = 0
    uncheckable: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> JsonObject:
        """The JSON object of a report."""
        return {
            "passed": self.passed,
            "failed": self.failed,
            "noticed": self.noticed,
            "not_checkable": self.uncheckable.total(),
            "reasons": dict(self.uncheckable.most_common()),
        }


@dataclass(slots=True)
class Report:
    """All that was checked. What could not be is counted with its reason, never as passed."""

    tallies: dict[Check, Tally] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def tally(self, check: Check) -> Tally:
        """How `check` went so far."""
        return self.tallies.setdefault(check, Tally())

    def passed(self, check: Check, count: int = 1) -> None:
        """A check that held."""
        self.tally(check).passed += count

    def uncheckable(self, check: Check, reason: str, count: int = 1) -> None:
        """A check that could not be made."""
        self.tally(check).uncheckable[reason] += count

    def found(self, code: Code, check: Check, place: str, detail: str) -> None:
        """A check that did not hold, or something worth a notice."""
        tally = self.tally(check)
        if code.is_notice:
            tally.noticed += 1
        else:
            tally.failed += 1
        if len(self.findings) < MAX_FINDINGS:
            shown = detail if len(detail) <= MAX_DETAIL else detail[:MAX_DETAIL] + "…"
            self.findings.append(Finding(code, check, place, shown))

    def add(self, other: Report) -> None:
        """Take in what another process found."""
        for check, theirs in other.tallies.items():
            ours = self.tally(check)
            ours.passed += theirs.passed
            ours.failed += theirs.failed
            ours.noticed += theirs.noticed
            ours.uncheckable += theirs.uncheckable
        room = MAX_FINDINGS - len(self.findings)
        self.findings.extend(other.findings[:room])

    @property
    def failed(self) -> int:
        """Checks that did not hold."""
        return sum(tally.failed for tally in self.tallies.values())

    @property
    def noticed(self) -> int:
        """Notices."""
        return sum(tally.noticed for tally in self.tallies.values())

    def to_json(self) -> JsonObject:
        """The JSON object of a report."""
        checks: dict[str, Json] = {
            check.value: self.tallies[check].to_json() for check in Check if check in self.tallies
        }
        return {
            "ok": not self.failed,
            "failed": self.failed,
            "noticed": self.noticed,
            "checks": checks,
            "findings": [finding.to_json() for finding in self.findings],
            "findings_left_out": self.failed + self.noticed - len(self.findings),
        }
