"""The form of a file: its bytes, its text, its syntax tree. Standard library only.

Everything is bounded before it is looked at. CPython's own parser can be brought down by
a hostile file, so this runs in the worker (`worker`), never in the arena's process.
"""

from __future__ import annotations

import ast
import bisect
import re
import warnings
from collections.abc import Iterator

from arena.submissions.agent_name import name_fault
from arena.submissions.policy import Policy
from arena.submissions.rules import Rule, Violation, violation

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
"""PEP 263: in one of the first two lines, the second only after a comment or nothing."""
_BLANK = re.compile(r"^[ \t\f]*(?:#.*)?$")
_UTF8 = frozenset({"utf-8", "utf8", "utf_8", "utf-8-sig", "u8", "utf"})
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]+"
)
_NEWLINE = re.compile(r"\r\n|\r|\n")
MAIN = "agent_main"


def name_violations(name: str, policy: Policy) -> list[Violation]:
    """Whether a submission may be called so."""
    fault = name_fault(name, policy.max_name_chars)
    return [] if fault is None else [violation(Rule.NAME, 0, 0, fault)]


def decode(source: bytes, policy: Policy) -> tuple[str | None, list[Violation]]:
    """The text of a file as Python reads it, or None with the reason."""
    if len(source) > policy.max_bytes:
        found = f"{len(source):,} bytes, {policy.max_bytes:,} are allowed"
        return None, [violation(Rule.TOO_LARGE, 0, 0, found)]
    if (place := source.find(b"\0")) >= 0:
        return None, [violation(Rule.NUL, _line(source, place), 0, "a NUL byte")]
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte 0x{source[error.start]:02x} is no UTF-8"
        return None, [violation(Rule.ENCODING, _line(source, error.start), 0, found)]
    found_here = list(_coding_lines(text))
    text = _NEWLINE.sub("\n", text)
    found_here += _disguised(text, policy)
    return text, found_here


def _line(source: bytes, place: int) -> int:
    return source.count(b"\n", 0, place) + 1


def _coding_lines(text: str) -> Iterator[Violation]:
    """A file in another coding shows a reader other text than it shows Python."""
    for number, line in enumerate(_NEWLINE.split(text, maxsplit=2)[:2], start=1):
        if (match := _COOKIE.match(line)) and match[1].lower() not in _UTF8:
            yield violation(Rule.ENCODING, number, match.start(1) + 1, f"coding {match[1]}")
        if not _BLANK.match(line):
            return


def _disguised(text: str, policy: Policy) -> Iterator[Violation]:
    """Text that reads otherwise than it looks (CVE-2021-42574), or carries what nobody sees."""
    if match := _BIDI.search(text):
        line, column = position(text, match.start())
        yield violation(Rule.DISGUISED, line, column, f"U+{ord(match[0]):04X}")
    yield from invisible(text, policy, 1)


def invisible(text: str, policy: Policy, line: int) -> Iterator[Violation]:
    """Runs of invisible characters, or very many of them, in a text that begins at `line`."""
    total = 0
    for match in INVISIBLE.finditer(text):
        total += len(match[0])
        if len(match[0]) > policy.max_invisible or total > 20 * policy.max_invisible:
            yield violation(
                Rule.INVISIBLE,
                line + text.count("\n", 0, match.start()),
                0,
                f"{len(match[0])} invisible characters in a row, {total} so far",
            )
            return


class Lines:
    """The lines of one text, for many places in it."""

    def __init__(self, text: str, first: int = 1) -> None:
        self._first = first
        self._breaks = [match.start() for match in re.finditer("\n", text)]

    def at(self, place: int) -> int:
        """The line of a place, where the text begins on line `first`."""
        return self._first + bisect.bisect_left(self._breaks, place)


def position(text: str, place: int) -> tuple[int, int]:
    """Line and column, from 1, of a place in a text."""
    start = text.rfind("\n", 0, place) + 1
    return text.count("\n", 0, place) + 1, place - start + 1


def parse(text: str, policy: Policy) -> tuple[ast.Module | None, list[Violation]]:
    """The syntax tree, when the file compiles within the limits; nothing of it is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, "agent.py", feature_version=policy.python)
            problem = _measure(tree, policy)
            if problem is not None:
                return None, [problem]
            compile(text, "agent.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column = max(error.lineno or 0, 0), max(error.offset or 0, 0)
        return None, [violation(Rule.SYNTAX, line, column, error.msg or "invalid syntax")]
    except (ValueError, OverflowError) as error:
        return None, [violation(Rule.SYNTAX, 0, 0, str(error))]
    except (RecursionError, MemoryError) as error:
        return None, [violation(Rule.TOO_COMPLEX, 0, 0, str(error) or type(error).__name__)]
    return tree, main_violations(tree)


def _measure(tree: ast.Module, policy: Policy) -> Violation | None:
    """Size and depth, level by level and without recursion."""
    level: list[ast.AST] = [tree]
    depth = nodes = 0
    while level:
        depth += 1
        nodes += len(level)
        if depth > policy.max_depth or nodes > policy.max_nodes:
            line = next((n.lineno for n in level if hasattr(n, "lineno")), 0)
            what = "nested deeper than" if depth > policy.max_depth else "more parts than"
            limit = policy.max_depth if depth > policy.max_depth else policy.max_nodes
            return violation(Rule.TOO_COMPLEX, line, 0, f"{what} {limit:,}")
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None


def main_violations(tree: ast.Module) -> list[Violation]:
    """Whether the top level defines an `agent_main` that can be called with one argument."""
    last: ast.stmt | None = None
    for statement in _top_level(tree.body):
        if MAIN in _bound(statement):
            last = statement
    if last is None:
        return [violation(Rule.NO_MAIN, 0, 0, "no agent_main at the top level")]
    if isinstance(last, ast.AsyncFunctionDef):
        return [_no_main(last, "agent_main is async: it would return a coroutine, no steps")]
    if isinstance(last, ast.ClassDef):
        return [_no_main(last, "agent_main is a class, not a function")]
    if isinstance(last, ast.FunctionDef):
        given = last.args
        positional = len(given.posonlyargs) + len(given.args)
        required = positional - len(given.defaults)
        keywords = sum(default is None for default in given.kw_defaults)
        if required > 1 or keywords or (positional < 1 and given.vararg is None):
            return [_no_main(last, "agent_main cannot be called with one argument")]
    return []


def _no_main(statement: ast.stmt, found: str) -> Violation:
    return violation(Rule.NO_MAIN, statement.lineno, statement.col_offset + 1, found)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the file is loaded, those inside if, try and with included."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With | ast.For | ast.While):
            for name in ("body", "handlers", "orelse", "finalbody"):
                for part in getattr(statement, name, []):
                    inner = part.body if isinstance(part, ast.ExceptHandler) else [part]
                    yield from _top_level(inner)


def _bound(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    return {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
