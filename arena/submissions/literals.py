"""What a file carries in its literals, comments and docstrings: tables, blobs, numbers.

Honest agents carry long prompts, lists of common words and a few tables of units and
services; those pass. Standard library only.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator

from arena.submissions.encoded import encoded_runs, is_packed
from arena.submissions.folding import Folder
from arena.submissions.form import Lines, invisible
from arena.submissions.policy import Policy
from arena.submissions.rules import Rule, Violation, violation

_COLLECTIONS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
PROSE_CHARS = 300
"""A longer string in a table is a prompt, and counts as prose."""
MAX_BRANCHES = 80
MAX_STORES = 150
MAX_CALLS = 80
MAX_ROWS = 40
MAX_GROUP = 16
"""A list of so few words may be the keywords of one problem."""
_ID_LIKE = re.compile(r"(?<![\w.])\d{7,13}(?![\w.]*\d)")
_NUMBER = re.compile(r"\d{5,19}")
_ROW = re.compile(r"^[^|\t;\n]{3,200}?(?:\||\t|=>|->|::|;).{2,}$", re.MULTILINE)
_BLANKS = re.compile(r"(?=[ \t]*\t)(?=[ \t]* )[ \t]{48,}")
MAX_NUMBERS = 20_000

Text = tuple[int, str]
"""A line, and a text that begins there."""


class Literals:
    """Looks at all that one file carries.

    `violations`: what was found, unordered. `texts`: everything that may hold words of a
    problem; `numbers`: digits that may be a product's id, with their line.
    """

    def __init__(self, tree: ast.Module, text: str, folder: Folder, policy: Policy) -> None:
        self._policy = policy
        self._nodes = list(ast.walk(tree))
        self.violations: list[Violation] = []
        self.texts: list[Text] = list(self._all_texts(text, folder))
        self.numbers: dict[str, int] = {}
        self._tables()
        self._branches()
        self._runs()
        self._integers(folder)
        self._id_like()
        self._encoded()

    def _report(self, rule: Rule, line: int, found: str) -> None:
        self.violations.append(violation(rule, line, 0, found))

    def _all_texts(self, text: str, folder: Folder) -> Iterator[Text]:
        literals: set[str] = set()
        for node in self._nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                shown = _as_text(node.value)
                literals.add(shown)
                yield node.lineno, shown
        seen: set[str] = set()
        for made, value in folder.built.values():
            if isinstance(value, str | bytes) and len(value) > 4:
                shown = _as_text(value)
                if shown not in literals and shown not in seen:
                    seen.add(shown)
                    yield made.lineno, shown
        for node in self._nodes:
            if isinstance(node, ast.List | ast.Tuple | ast.Set) and len(node.elts) <= MAX_GROUP:
                words = [e.value for e in node.elts if isinstance(e, ast.Constant)]
                texts = [word for word in words if isinstance(word, str)]
                if len(texts) > 2:
                    yield node.lineno, " ".join(texts)
        yield from comments(text)

    # Tables.

    def _tables(self) -> None:
        """Outermost collections with the short constants below them."""
        inside: set[int] = set()
        total = 0
        for node in self._nodes:  # parents first
            if not isinstance(node, _COLLECTIONS) or id(node) in inside:
                continue
            items = chars = 0
            for child in ast.walk(node):
                inside.add(id(child))
                if isinstance(child, ast.Constant) and _is_entry(child.value):
                    items += 1
                    chars += len(child.value) if isinstance(child.value, str | bytes) else 0
            total += items
            if items > self._policy.max_table_items or chars > self._policy.max_table_chars:
                self._report(Rule.TABLE, node.lineno, f"{items} entries, {chars:,} characters")
        if total > self._policy.max_tables_items:
            self._report(Rule.TABLE, 0, f"{total:,} entries in all literals together")
        for line, text in self.texts:
            rows = len(_ROW.findall(text))
            if rows >= MAX_ROWS:
                self._report(Rule.TABLE, line, f"a text with {rows} rows of a table")

    def _branches(self) -> None:
        """A table written as if, elif, elif … or as cases."""
        inner = {
            id(node.orelse[0])
            for node in self._nodes
            if isinstance(node, ast.If) and len(node.orelse) == 1
        }
        for node in self._nodes:
            count = 0
            if isinstance(node, ast.If) and id(node) not in inner:
                branch: ast.stmt | None = node
                while isinstance(branch, ast.If):
                    count += 1
                    branch = branch.orelse[0] if len(branch.orelse) == 1 else None
            elif isinstance(node, ast.Match):
                count = len(node.cases)
            elif isinstance(node, ast.FunctionDef | ast.Module):
                count = sum(isinstance(s, ast.If) and _has_constant(s.test) for s in node.body)
            if count > MAX_BRANCHES:
                line = getattr(node, "lineno", 0)
                self._report(Rule.TABLE, line, f"{count} branches")

    def _runs(self) -> None:
        """A table written as assignments or calls, one an entry."""
        stores: Counter[str] = Counter()
        calls: Counter[str] = Counter()
        first: dict[str, int] = {}
        for node in self._nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        name = f"{ast.unparse(target.value)[:40]}[…]"
                    else:
                        name = "names"
                    stores[name] += 1
                    first.setdefault(name, node.lineno)
            elif isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1:
                given = [*node.args, *(k.value for k in node.keywords)]
                if all(map(_is_constant, given)) and isinstance(
                    node.func, ast.Name | ast.Attribute
                ):
                    called = node.func
                    name = called.id if isinstance(called, ast.Name) else called.attr
                    calls[f"{name}(…)"] += 1
                    first.setdefault(f"{name}(…)", node.lineno)
        for counter, limit in ((stores, MAX_STORES), (calls, MAX_CALLS)):
            for name, count in sorted(counter.items()):
                if count > limit:
                    self._report(Rule.TABLE, first[name], f"{count} times {name} with constants")

    # Numbers.

    def _integers(self, folder: Folder) -> None:
        for node in self._nodes:
            if isinstance(node, ast.Constant):
                self._integer(node.value, node.lineno)
        for made, value in folder.built.values():
            if isinstance(value, int) and not isinstance(made, ast.UnaryOp):
                self._number(value, made.lineno)

    def _integer(self, value: object, line: int) -> None:
        if isinstance(value, float) and value.is_integer() and 1e6 <= abs(value) < 1e13:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            if value.bit_length() > self._policy.max_number_bits:
                self._report(Rule.LONG_NUMBER, line, f"an integer of {value.bit_length()} bits")
            self._number(value, line)

    def _number(self, value: int, line: int) -> None:
        if 10_000 <= abs(value) < 10**19:
            self.numbers.setdefault(str(abs(value)), line)

    def _id_like(self) -> None:
        """Numbers of a product id's length, wherever they stand."""
        like: dict[str, int] = {}
        for digits, line in self.numbers.items():
            if 7 <= len(digits) <= 13 and not _is_round(digits):
                like.setdefault(digits, line)
        for start, text in self.texts:
            lines = Lines(text, start)
            for match in _NUMBER.finditer(text):
                if len(self.numbers) < MAX_NUMBERS:
                    self.numbers.setdefault(match[0], lines.at(match.start()))
            for match in _ID_LIKE.finditer(text):
                if not _is_round(match[0]):
                    like.setdefault(match[0], lines.at(match.start()))
        if len(like) > self._policy.max_id_like:
            shown = ", ".join(sorted(like, key=lambda d: (like[d], d))[:3])
            self._report(Rule.ID_TABLE, min(like.values()), f"{len(like)} of them: {shown} …")

    # Encoded data.

    def _encoded(self) -> None:
        total = 0
        place = 0
        for line, text in self.texts:
            self.violations += invisible(text, self._policy, line)
            if _BLANKS.search(text):
                self._report(Rule.INVISIBLE, line, "a long run of mixed blanks")
            if is_packed(text):
                self._report(Rule.BLOB, line, f"packed characters: {text[:20]!a}")
                continue
            for run in encoded_runs(text):
                total += len(run)
                place = place or line
                if len(run) >= self._policy.max_blob_chars:
                    self._report(Rule.BLOB, line, f"{len(run)} characters: {run[:24]}…")
        if total >= self._policy.max_blobs_chars:
            self._report(Rule.BLOB, place, f"{total} characters in all")


def comments(text: str) -> Iterator[Text]:
    """Comments; those on lines that follow one another as one text."""
    found: list[tuple[int, str]] = []
    try:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        marks = (token for token in tokens if token.type == tokenize.COMMENT)
        found.extend((token.start[0], token.string.lstrip("#! ")) for token in marks)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        # The file compiles, so this is a corner where tokenize knows less than Python.
        lines = enumerate(text.split("\n"), start=1)
        found = [(n, line.partition("#")[2]) for n, line in lines if "#" in line]
    start, block, last = 0, [""], -2
    for line, comment in found:
        if line != last + 1:
            if last > 0:
                yield start, "\n".join(block)
            start, block = line, []
        block.append(comment)
        last = line
    if found:
        yield start, "\n".join(block)


def _as_text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("latin-1")


def _is_entry(value: object) -> bool:
    """A constant that can be an entry of a table: no flag, no prompt."""
    if isinstance(value, str | bytes):
        return 0 < len(value) < PROSE_CHARS
    return isinstance(value, int | float | complex) and not isinstance(value, bool)


def _has_constant(test: ast.expr) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(test))


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _is_round(digits: str) -> bool:
    """A limit or a mask rather than an id: 300000, 2147483647, 16777216."""
    value = int(digits)
    trailing = len(digits) - len(digits.rstrip("0"))
    power = value & (value - 1) == 0 or value & (value + 1) == 0
    return trailing * 2 >= len(digits) or power or len(set(digits)) <= 2 or _counts(digits)


def _counts(digits: str) -> bool:
    """1234567, 987654321: examples, no ids."""
    return digits in "12345678901234567890" or digits in "98765432109876543210"
