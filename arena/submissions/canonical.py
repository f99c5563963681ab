"""A file's code in a form in which copies are alike. Standard library only.

What an author can change without changing the program is taken out: names of their own,
layout, comments, docstrings, annotations, logging, the order of functions and methods,
code that cannot be reached or whose result nobody uses, constants, ways to write the same
comparison. Names of builtins, imported things and other people's attributes stay.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from arena.submissions.scopes import Kind, Scopes

OWN = "\0"
"""Marks a token that is a name of the author's own: only where it recurs counts."""
_LOGGING = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Token = tuple[str, int]
"""What it is, and its line."""


class Canonical:
    """`units`: the token streams of the functions, methods and other statements of a file."""

    def __init__(self, tree: ast.Module, scopes: Scopes) -> None:
        self._scopes = scopes
        self._own_names = _own_names(tree)
        parameters = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
        self._own_keywords = self._own_names | parameters
        self._live: set[str] | None = None
        self.units: list[list[Token]] = []
        for statement in _reachable(tree):
            self._unit(statement)

    def _unit(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ClassDef):
            for inner in statement.body:
                self._unit(inner)
            return
        self._live = _live_names(statement) if isinstance(statement, _DEFINITIONS) else None
        if tokens := list(self._statement(statement)):
            self.units.append(tokens)

    def _block(self, body: Sequence[ast.stmt]) -> Iterator[Token]:
        for statement in body:
            yield from self._statement(statement)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                return  # what follows cannot be reached

    def _statement(self, node: ast.stmt) -> Iterator[Token]:
        if _is_noise(node) or self._is_dead(node):
            return
        line = node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield "def", line
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                yield OWN + argument.arg, line
            yield from self._block(node.body)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                yield from self._statement(inner)
        elif isinstance(node, ast.If):
            yield from self._if(node)
        elif isinstance(node, ast.AugAssign):
            yield "Assign", line
            yield from self._expression(node.target)
            yield type(node.op).__name__, line
            yield from self._expression(node.target)
            yield from self._expression(node.value)
        elif isinstance(node, ast.AnnAssign):
            yield "Assign", line
            yield from self._expressions([node.target, node.value])
        else:
            yield type(node).__name__, line
            for _, value in ast.iter_fields(node):
                yield from self._field(value, line)

    def _if(self, node: ast.If) -> Iterator[Token]:
        fixed = node.test.value if isinstance(node.test, ast.Constant) else None
        if isinstance(node.test, ast.Constant):
            yield from self._block(node.body if fixed else node.orelse)
            return
        test, body, orelse = node.test, node.body, node.orelse
        if orelse and isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, body, orelse = test.operand, orelse, body
        yield "If", node.lineno
        yield from self._expression(test)
        yield from self._block(body)
        if orelse:
            yield "else", node.lineno
            yield from self._block(orelse)

    def _field(self, value: object, line: int) -> Iterator[Token]:
        if isinstance(value, list):
            if value and isinstance(value[0], ast.stmt):
                yield from self._block(value)
            else:
                for item in value:
                    yield from self._field(item, line)
        elif isinstance(value, ast.expr):
            yield from self._expression(value)
        elif isinstance(value, ast.ExceptHandler):
            yield "except", line
            yield from self._expressions([value.type])
            yield from self._block(value.body)
        elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
            yield type(value).__name__, line
            for _, inner in ast.iter_fields(value):
                yield from self._field(inner, line)

    def _expressions(self, nodes: Sequence[ast.expr | None]) -> Iterator[Token]:
        for node in nodes:
            if node is not None:
                yield from self._expression(node)

    def _expression(self, node: ast.expr) -> Iterator[Token]:
        line = node.lineno
        if isinstance(node, ast.Name):
            yield self._name(node), line
        elif isinstance(node, ast.Constant):
            yield _constant(node.value), line
        elif isinstance(node, ast.Attribute):
            yield "Attribute", line
            yield from self._expression(node.value)
            yield (OWN if node.attr in self._own_names else "") + node.attr, line
        elif isinstance(node, ast.JoinedStr):
            yield "format", line
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    yield from self._expression(part.value)
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._comparison(node)
        elif isinstance(node, ast.BinOp) and _is_text(node):
            yield "S", line
        elif isinstance(node, ast.Call):
            yield "Call", line
            yield from self._expression(node.func)
            yield from self._expressions(node.args)
            for keyword in sorted(node.keywords, key=self._keyword_order):
                own = keyword.arg in self._own_keywords
                yield f"{OWN if own else ''}{keyword.arg}=", line
                yield from self._expression(keyword.value)
        elif isinstance(node, ast.Lambda):
            yield "Lambda", line
            for argument in node.args.args:
                yield OWN + argument.arg, line
            yield from self._expression(node.body)
        else:
            yield type(node).__name__, line
            for _, value in ast.iter_fields(node):
                yield from self._field(value, line)

    def _keyword_order(self, keyword: ast.keyword) -> tuple[bool, str]:
        """Foreign names by the alphabet, then own ones by the form of what they are given."""
        own = keyword.arg in self._own_keywords
        return own, type(keyword.value).__name__ if own else keyword.arg or ""

    def _comparison(self, node: ast.Compare) -> Iterator[Token]:
        """`b > a` as `a < b`."""
        kind, left, right = type(node.ops[0]), node.left, node.comparators[0]
        turned = {ast.Gt: "Lt", ast.GtE: "LtE"}.get(kind)
        if turned:
            left, right = right, left
        yield turned or kind.__name__, node.lineno
        yield from self._expressions([left, right])

    def _name(self, node: ast.Name) -> str:
        bindings = self._scopes.of(node).bound(node.id)
        if not bindings:
            return node.id
        for binding in bindings:
            if binding.kind is Kind.MODULE:
                return binding.module
            if binding.kind is Kind.IMPORTED:
                return f"{binding.module}.{binding.name}"
        return OWN + node.id

    def _is_dead(self, node: ast.stmt) -> bool:
        """An assignment that nobody reads, of something that does nothing."""
        if self._live is None:
            return False
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = all(isinstance(t, ast.Name) and t.id not in self._live for t in targets)
            return names and _is_pure(node.value)
        return False


def _reachable(tree: ast.Module) -> list[ast.stmt]:
    """The statements of a file that are run or referred to, whatever their order."""
    definitions: dict[str, list[ast.stmt]] = {}
    queue: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        decorated = isinstance(statement, _DEFINITIONS) and bool(statement.decorator_list)
        if isinstance(statement, _DEFINITIONS) and statement.name != "agent_main" and not decorated:
            definitions.setdefault(statement.name, []).append(statement)
        else:
            queue.append(statement)
    found: list[ast.stmt] = []
    while queue:
        statement = queue.pop()
        found.append(statement)
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                queue += definitions.pop(node.id, [])
            elif isinstance(node, ast.Attribute):
                queue += definitions.pop(node.attr, [])
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                queue += definitions.pop(node.value, [])
    return sorted(found, key=lambda s: s.lineno)


def _own_names(tree: ast.Module) -> set[str]:
    """Attributes that the file itself defines: methods, fields, what it stores."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, _DEFINITIONS):
                    names.add(inner.name)
                for target in (
                    ast.walk(inner) if isinstance(inner, ast.AnnAssign | ast.Assign) else ()
                ):
                    if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store):
                        names.add(target.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return {name for name in names if not name.startswith("__")}


def _live_names(node: ast.stmt) -> set[str]:
    """Names of a function whose values can matter: read by more than assignments to dead ones."""
    needs: dict[str, set[str]] = {}
    live: set[str] = set()
    for statement in ast.walk(node):
        if not isinstance(statement, ast.stmt):
            continue
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            if all(isinstance(t, ast.Name) for t in targets) and _is_pure(statement.value):
                read = _read(statement.value)
                for target in targets:
                    assert isinstance(target, ast.Name)
                    needs.setdefault(target.id, set()).update(read)
                continue
        for child in ast.iter_child_nodes(statement):
            if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                live |= _read(child)
            elif isinstance(child, ast.match_case):
                live |= _read(child.pattern) | _read(child.guard)
    queue = list(live)
    while queue:
        for name in needs.pop(queue.pop(), ()):
            if name not in live:
                live.add(name)
                queue.append(name)
    declared = {
        n for s in ast.walk(node) if isinstance(s, ast.Global | ast.Nonlocal) for n in s.names
    }
    return live | declared


def _read(node: ast.AST | None) -> set[str]:
    if node is None:
        return set()
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _is_pure(node: ast.expr | None) -> bool:
    """Whether evaluating it does nothing: no call but of a harmless builtin, no await."""
    if node is None:
        return True
    for child in ast.walk(node):
        if isinstance(child, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
        if isinstance(child, ast.Call):
            called = child.func
            harmless = isinstance(called, ast.Name) and called.id in _PURE
            if not harmless:
                return False
    return True


_PURE = frozenset(
    {
        *(
            "len",
            "str",
            "int",
            "float",
            "bool",
            "list",
            "dict",
            "set",
            "tuple",
            "sum",
            "min",
            "max",
        ),
        *(
            "abs",
            "range",
            "sorted",
            "reversed",
            "round",
            "repr",
            "type",
            "id",
            "hash",
            "chr",
            "ord",
        ),
        *("enumerate", "zip", "isinstance", "divmod", "hex", "any", "all"),
    }
)


def _is_noise(node: ast.stmt) -> bool:
    """Docstrings, logging, pass, annotations without a value, and what does nothing."""
    if isinstance(node, ast.Pass | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal):
        return True
    if isinstance(node, ast.AnnAssign) and node.value is None:
        return True
    if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
        return not node.test.value and not node.orelse
    if isinstance(node, ast.While) and isinstance(node.test, ast.Constant):
        return not node.test.value
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant)
    if not isinstance(node, ast.Expr):
        return False
    called = node.value.func if isinstance(node.value, ast.Call) else None
    if isinstance(called, ast.Name) and called.id == "print":
        return True
    if isinstance(called, ast.Attribute) and called.attr in _LOGGING:
        return True
    return _is_pure(node.value)


def _constant(value: object) -> str:
    if value is None or isinstance(value, bool) or value is Ellipsis:
        return repr(value)
    return "S" if isinstance(value, str) else "B" if isinstance(value, bytes) else "N"


def _is_text(node: ast.expr) -> bool:
    """A text put together from literals."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add) and _is_text(node.left) and _is_text(node.right)
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
