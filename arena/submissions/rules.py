"""The gate's rules: a stable code, why it stands, how to mend the file. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
MAX_FOUND = 120


class Rule(StrEnum):
    """Codes are stable: verdicts in records and pages hold them."""

    TOO_LARGE = "form.too_large"
    NAME = "form.name"
    ENCODING = "form.encoding"
    NUL = "form.nul"
    DISGUISED = "form.disguised_text"
    SYNTAX = "form.syntax"
    TOO_COMPLEX = "form.too_complex"
    NO_MAIN = "form.no_agent_main"
    MODULE = "module.not_allowed"
    MODULE_NAME = "module.name_not_allowed"
    STAR = "module.star_import"
    RELATIVE = "module.relative_import"
    MODULE_VALUE = "module.used_as_value"
    MODULE_CHANGED = "module.changed"
    DYNAMIC = "code.runs_text"
    HIDDEN_NAME = "code.hidden_name"
    INTERNALS = "code.internals"
    METACLASS = "code.makes_classes"
    FILE_WRITE = "code.writes_file"
    FILE = "code.reads_file"
    OWN_FILE = "code.reads_itself"
    PRODUCT_ID = "answers.product_id"
    ID_TABLE = "answers.id_table"
    QUERY = "answers.query"
    TITLE = "answers.title"
    TABLE = "answers.table"
    BLOB = "answers.encoded_data"
    LONG_NUMBER = "answers.long_number"
    INVISIBLE = "answers.invisible_text"
    IDENTICAL = "copy.identical"
    COPIED_CODE = "copy.code"
    COPIED_TEXT = "copy.text"


EXPLAINED: dict[Rule, tuple[str, str]] = {
    Rule.TOO_LARGE: (
        "no agent needs a file this large; what fills it is data",
        "take data and dead code out of the file",
    ),
    Rule.NAME: (
        "names stand in tables and records",
        "give a short name of letters, digits, spaces and ._-+:#@(): --name",
    ),
    Rule.ENCODING: (
        "a reader and Python must see the same text, and only UTF-8 grants that",
        "save the file as UTF-8 and drop any other coding line",
    ),
    Rule.NUL: ("Python takes no NUL bytes in source", "remove the NUL bytes"),
    Rule.DISGUISED: (
        "these characters show a reader another order of the text than Python reads",
        "write them as escapes (\\u202e) where they are data, and remove them elsewhere",
    ),
    Rule.SYNTAX: (
        "the sandbox's Python cannot compile the file",
        "run python3 -m py_compile on it, with the sandbox's version of Python",
    ),
    Rule.TOO_COMPLEX: (
        "the file cannot be read within the limits of size, depth and time",
        "split deep expressions and long chains, move data out",
    ),
    Rule.NO_MAIN: (
        "the sandbox calls agent_main(problem_data)",
        "define at the top level: def agent_main(problem_data): …",
    ),
    Rule.MODULE: (
        "the module is not on the list of what an agent may use",
        "use the listed modules; docs/admission.md has them",
    ),
    Rule.MODULE_NAME: (
        "the module is allowed, this name of it is not",
        "use another way; docs/admission.md says which names are allowed",
    ),
    Rule.STAR: (
        "a star import hides which names come in",
        "import the names that you use, one by one",
    ),
    Rule.RELATIVE: ("an agent is one file and part of no package", "import by the full name"),
    Rule.MODULE_VALUE: (
        "a module that is passed around as a value can no longer be followed",
        "write module.name where you use it; rename with import … as …",
    ),
    Rule.MODULE_CHANGED: (
        "changing a module changes what other code means",
        "keep state in variables of your own",
    ),
    Rule.DYNAMIC: (
        "it runs text as code or reaches names by text, so nobody can tell what the file does",
        "write the code out; choose functions with a dict from name to function",
    ),
    Rule.HIDDEN_NAME: (
        "a name or piece of code is put together at run time, where no reader sees it",
        "write the name out, or choose with a dict from name to function",
    ),
    Rule.INTERNALS: (
        "Python's internals lead out of the allowed modules",
        "use ordinary attributes and functions",
    ),
    Rule.METACLASS: (
        "classes made at run time hide what they hold",
        "write the class out, or use dataclasses, enum or abc",
    ),
    Rule.FILE_WRITE: (
        "an agent leaves nothing behind between problems, and may not write files",
        "keep it in memory; open files for reading only, with the mode written out",
    ),
    Rule.FILE: ("this arena lets agents open no files", "keep what you need in the code"),
    Rule.OWN_FILE: (
        "a file that reads its own source can hide data in comments",
        "keep what you need in variables",
    ),
    Rule.PRODUCT_ID: (
        "this is the id of a product of the bank: an answer that stands in the file",
        "find products with the tools; make examples with invented short ids (P1, P2)",
    ),
    Rule.ID_TABLE: (
        "so many numbers of a product id's length are a table of answers",
        "find products with the tools; make examples with invented short ids (P1, P2)",
    ),
    Rule.QUERY: (
        "this is part of a problem's query: the file knows problems by heart",
        "handle queries by their form; invent your own examples",
    ),
    Rule.TITLE: (
        "this is part of the title of a product asked for: an answer that stands in the file",
        "find products with the tools; invent your own examples",
    ),
    Rule.TABLE: (
        "a table this large is knowledge of the problems or products, not of shopping",
        "derive it from the query and the tools, or keep a short list of common words",
    ),
    Rule.BLOB: (
        "encoded or compressed data cannot be read by anyone",
        "write data out as plain text, or leave it out",
    ),
    Rule.LONG_NUMBER: (
        "a number this long is packed data",
        "write data out as plain text, or leave it out",
    ),
    Rule.INVISIBLE: (
        "runs of characters that no eye sees can carry data",
        "remove them",
    ),
    Rule.IDENTICAL: (
        "an earlier submission has exactly this file",
        "submit work of your own",
    ),
    Rule.COPIED_CODE: (
        "renaming, reformatting, reordering or padding an earlier submission makes no new agent",
        "submit work of your own; the public bases may be built on",
    ),
    Rule.COPIED_TEXT: (
        "the prompts are those of an earlier submission, with few words changed",
        "write prompts of your own; those of the public bases may be built on",
    ),
}
"""Rule → why it stands, how to mend it."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach: `line` from 1 (0 when it is the whole file), `column` from 1 (0: unknown).

    `found` holds text of the file: show it escaped.
    """

    rule: Rule
    line: int
    column: int
    found: str

    @property
    def why(self) -> str:
        """Why the rule stands."""
        return EXPLAINED[self.rule][0]

    @property
    def fix(self) -> str:
        """How to mend the file."""
        return EXPLAINED[self.rule][1]

    def to_json(self) -> dict[str, Json]:
        """The form of `--json`, of the API and of the worker's answer."""
        return {
            "rule": self.rule.value,
            "line": self.line,
            "column": self.column,
            "found": self.found,
            "why": self.why,
            "fix": self.fix,
        }


def violation(rule: Rule, line: int, column: int, found: str) -> Violation:
    """A violation with a bounded, storable excerpt: no NUL, no lone surrogate."""
    text = found if len(found) <= MAX_FOUND else found[: MAX_FOUND - 1] + "…"
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "�")
    return Violation(rule, line, column, text)
