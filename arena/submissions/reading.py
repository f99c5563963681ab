"""One file, read: its violations, and what is compared with problems and other files.

Runs in the worker. The same bytes, policy and interpreter give the same reading. Standard
library only.
"""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from typing import Any

from arena.submissions.constructs import Constructs, ordered
from arena.submissions.fingerprints import Fingerprint, fingerprint
from arena.submissions.folding import Folder
from arena.submissions.form import decode, parse
from arena.submissions.literals import Literals, Text
from arena.submissions.policy import Policy
from arena.submissions.rules import Rule, Violation, violation
from arena.submissions.scopes import Scopes

MAX_VIOLATIONS = 200
"""More say nothing new."""
MAX_TEXTS = 20_000


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file says about itself. `texts` and `numbers` come with their lines."""

    violations: tuple[Violation, ...]
    fingerprint: Fingerprint | None = None
    texts: tuple[Text, ...] = ()
    numbers: tuple[tuple[str, int], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The worker's answer."""
        return {
            "violations": [v.to_json() for v in self.violations],
            "fingerprint": asdict(self.fingerprint) if self.fingerprint else None,
            "texts": self.texts,
            "numbers": self.numbers,
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Reading:
        """Read what `to_json` wrote."""
        found = value["fingerprint"]
        return cls(
            tuple(
                violation(Rule(v["rule"]), v["line"], v["column"], v["found"])
                for v in value["violations"]
            ),
            Fingerprint(
                found["sha256"],
                tuple((a, b, c) for a, b, c in found["code"]),
                tuple((a, b, c) for a, b, c in found["prose"]),
            )
            if found
            else None,
            tuple((line, text) for line, text in value["texts"]),
            tuple((digits, line) for digits, line in value["numbers"]),
        )


def read_source(source: bytes, policy: Policy) -> Reading:
    """Read a file by all rules that need nothing but the file. Runs nothing of it."""
    text, violations = decode(source, policy)
    if text is None:
        return Reading(tuple(violations))
    tree, more = parse(text, policy)
    violations += more
    if tree is None:
        return Reading(tuple(ordered(violations)))
    return _read_tree(source, text, tree, violations, policy)


def _read_tree(
    source: bytes, text: str, tree: ast.Module, violations: list[Violation], policy: Policy
) -> Reading:
    scopes = Scopes(tree)
    folder = Folder(tree, scopes)
    literals = Literals(tree, text, folder, policy)
    violations = [*violations, *Constructs(tree, scopes, folder, policy).violations]
    violations += literals.violations
    strings = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts = tuple(dict.fromkeys((line, _storable(t)) for line, t in literals.texts if len(t) > 4))
    return Reading(
        tuple(ordered(violations))[:MAX_VIOLATIONS],
        fingerprint(source, tree, scopes, strings),
        texts[:MAX_TEXTS],
        tuple(literals.numbers.items()),
    )


def _storable(text: str) -> str:
    """Without lone surrogates, which no JSON in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
