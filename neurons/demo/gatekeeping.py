"""The gate of the demonstration: admission as `arena agent check` and the API do it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from arena.problems.suite import load_suite
from arena.submissions.admission import Admission, check
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from neurons.demo.contenders import Contender
from scoring.types import Json, JsonObject


@dataclass
class Gate:
    """Reads file after file; what it has read before counts when it looks for copies."""

    reader: Reader
    bank: AnswerIndex
    known: CopyIndex = field(default_factory=CopyIndex)
    verdicts: dict[str, Admission] = field(default_factory=dict)

    @classmethod
    def over(cls, reader: Reader, open_suite: Path) -> Gate:
        """A gate that knows the answers of a suite."""
        return cls(reader, AnswerIndex.build(load_suite(open_suite).problems))

    def read(self, contender: Contender) -> Admission:
        """The verdict on a file."""
        admission = check(
            contender.file.read_bytes(),
            name=contender.name,
            policy=Policy(),
            known=self.known,
            bank=self.bank,
            hotkey=contender.name,
            reader=self.reader,
        )
        self.verdicts[contender.name] = admission
        if admission.fingerprint is not None and not admission.copies:
            self.known.add(contender.name, contender.name, admission.fingerprint)
        return admission

    def to_json(self) -> JsonObject:
        """Every verdict by name."""
        verdicts: dict[str, Json] = {n: _short(v) for n, v in self.verdicts.items()}
        return verdicts


def told(admission: Admission) -> str:
    """A verdict in one line. Holds text of the file: show it escaped."""
    if admission.admitted:
        return "admitted"
    if admission.copies:
        copy = admission.copies[0]
        return f"refused: {copy.of_theirs:.0%} of {copy.version} stands in it"
    first = admission.violations[0]
    return f"refused: {first.rule} in line {first.line}: {first.found}"


def _short(admission: Admission) -> JsonObject:
    rules: list[Json] = [*dict.fromkeys(str(v.rule) for v in admission.violations)]
    return {"admitted": admission.admitted, "rules": rules}
