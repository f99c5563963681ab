"""Values of constant expressions, as far as they can be told. Standard library only.

The expression half of `folding`: every operation is one of the listed pure ones, and every
one costs something of a budget, so that no file can make the reading long.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from arena.submissions.operations import (
    BINARY,
    BUILTINS,
    COMPARE,
    FUNCTIONS,
    METHODS,
    UNARY,
    Unknown,
    bounded,
    call_bounded,
    weight,
)
from arena.submissions.scopes import Kind, Scope, Scopes

BUDGET = 100_000
"""Steps in one file: an expression is one, and 32 characters that it handles another."""
_LEAVES = (ast.Constant, ast.Name, ast.Attribute)


class SpentError(Exception):
    """The budget is used up: nothing more is looked into."""


class Function:
    """A function of the file itself."""

    def __init__(self, node: ast.FunctionDef | ast.Lambda) -> None:
        self.node = node


class Builtin:
    """A builtin given as an argument, as in map(chr, …)."""

    def __init__(self, name: str) -> None:
        self.name = name


class _UnknownValue:
    """The absence of a value."""


UNKNOWN = _UnknownValue()


def known(*values: Any) -> bool:
    """Whether all of them are values."""
    return not any(value is UNKNOWN for value in values)


def no_value() -> Any:
    """Raise Unknown, in an expression."""
    raise Unknown


class Evaluator:
    """Evaluates expressions in the scopes of one file.

    `built` maps a node's id to the node and the text, bytes or number that was made there.
    """

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes
        self._frames: dict[int, dict[str, Any]] = {}
        self._left = BUDGET
        self._classes: dict[str, list[Scope]] = {}
        for scope in scopes.inner.values():
            if isinstance(scope.node, ast.ClassDef):
                self._classes.setdefault(scope.node.name, []).append(scope)
        self.built: dict[int, tuple[ast.expr, Any]] = {}

    def run_function(self, function: Function, values: Sequence[Any], named: dict[Any, Any]) -> Any:
        """Call one of the file's own functions. Raises Unknown."""
        raise NotImplementedError

    def spend(self, steps: int = 1) -> None:
        """Take steps from the budget. Raises SpentError."""
        self._left -= steps
        if self._left < 0:
            raise SpentError

    # Names.

    def frame(self, scope: Scope) -> dict[str, Any]:
        """The values of a scope's names."""
        return self._frames.setdefault(id(scope), {})

    def store(self, scope: Scope, name: str, value: Any) -> None:
        """Assign to a name as seen from a scope."""
        self.frame(scope.resolve(name) or scope)[name] = value

    def assign(self, target: ast.expr, value: Any) -> None:
        """Assign to a target of a statement."""
        self.spend()
        if isinstance(target, ast.Name):
            self.store(self._scopes.of(target), target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            items: Sequence[Any] = [UNKNOWN] * len(target.elts)
            if isinstance(value, list | tuple | str) and len(value) == len(target.elts):
                items = value
            for element, item in zip(target.elts, items, strict=True):
                self.assign(element, item)
        elif isinstance(target, ast.Subscript) and value is not UNKNOWN:
            many, key = self.attempt(target.value), self.attempt(target.slice)
            if isinstance(many, dict) and len(many) < 1000 and isinstance(key, str | int):
                many[key] = value

    def lookup(self, scope: Scope, name: str) -> Any:
        """A name's value. Raises Unknown."""
        home = scope.resolve(name)
        value = self.frame(home).get(name, UNKNOWN) if home else UNKNOWN
        return value if value is not UNKNOWN else no_value()

    def full_name(self, node: ast.expr) -> str:
        """`base64.b64decode`, whatever it was imported as; empty when it is something else."""
        if isinstance(node, ast.Name):
            bound = self._scopes.of(node).bound(node.id)
            if not bound:
                return node.id
            first = bound[0]
            if first.kind is Kind.MODULE:
                return first.module
            return f"{first.module}.{first.name}" if first.kind is Kind.IMPORTED else ""
        if isinstance(node, ast.Attribute) and (base := self.full_name(node.value)):
            return f"{base}.{node.attr}"
        return ""

    # Expressions.

    def attempt(self, node: ast.expr | None) -> Any:
        """The value of an expression, or `UNKNOWN`."""
        if node is None:
            return UNKNOWN
        try:
            return self.value(node)
        except Unknown:
            return UNKNOWN

    def value(self, node: ast.expr) -> Any:
        """The value of an expression. Raises Unknown."""
        self.spend()
        if isinstance(node, ast.Constant):
            return bounded(node.value)
        method = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if method is None:
            self._below(node)
            raise Unknown
        value = method(node)
        self.note(node, value)
        return value

    def note(self, node: ast.expr, value: Any, place: ast.AST | None = None) -> None:
        """Keep what was made from pieces, at an expression or at another `place`."""
        leaf = place is None and isinstance(node, _LEAVES)
        if isinstance(value, str | bytes | int) and not leaf:
            self.built[id(place or node)] = (node, value)

    def iterable(self, node: ast.expr) -> Sequence[Any] | None:
        """The items of a constant collection, or None."""
        value = self.attempt(node)
        if isinstance(value, str | bytes | list | tuple | range | dict | set | frozenset):
            return list(value)
        return None

    def apply(self, function: Any, *values: Any, **named: Any) -> Any:
        """Do a listed operation, and pay for it. Raises Unknown."""
        if any(isinstance(v, Function | Builtin | _UnknownValue) for v in values):
            raise Unknown
        result = call_bounded(function, values, named)
        self.spend(sum(map(weight, values)) // 32 + weight(result) // 32)
        return result

    def _below(self, node: ast.AST) -> None:
        """Look into what stands inside an expression that has no known value."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.attempt(child)
            elif isinstance(child, ast.keyword | ast.FormattedValue):
                self.attempt(child.value)

    def _of_name(self, node: ast.Name) -> Any:
        return self.lookup(self._scopes.of(node), node.id)

    def _of_attribute(self, node: ast.Attribute) -> Any:
        """A class's constant, by the class's name or `self`; else unknown."""
        self.attempt(node.value)
        if isinstance(node.value, ast.Name):
            for owner in self._owners(node.value):
                value = self.frame(owner).get(node.attr, UNKNOWN)
                if value is not UNKNOWN:
                    return value
        raise Unknown

    def _owners(self, name: ast.Name) -> Iterator[Scope]:
        scope: Scope | None = self._scopes.of(name)
        while scope is not None and name.id in ("self", "cls"):
            if scope.is_class:
                yield scope
            scope = scope.parent
        yield from self._classes.get(name.id, ())

    def _of_binop(self, node: ast.BinOp) -> Any:
        left, right = self.attempt(node.left), self.attempt(node.right)
        return self.operate(node.op, left, right)

    def operate(self, operator: ast.operator, left: Any, right: Any) -> Any:
        """The value of a binary operation. Raises Unknown."""
        function = BINARY.get(type(operator))
        return self.apply(function, left, right) if function else no_value()

    def _of_unaryop(self, node: ast.UnaryOp) -> Any:
        return self.apply(UNARY[type(node.op)], self.value(node.operand))

    def _of_boolop(self, node: ast.BoolOp) -> Any:
        for part in [self.attempt(part) for part in node.values]:
            if not known(part) or bool(part) is isinstance(node.op, ast.Or):
                return part if known(part) else no_value()
        return part

    def _of_compare(self, node: ast.Compare) -> Any:
        left = self.attempt(node.left)
        rights = [self.attempt(right) for right in node.comparators]
        if not known(left, *rights):
            raise Unknown
        for kind, right in zip(node.ops, rights, strict=True):
            if not self.apply(COMPARE[type(kind)], left, right):
                return False
            left = right
        return True

    def _of_ifexp(self, node: ast.IfExp) -> Any:
        test = self.attempt(node.test)
        if test is UNKNOWN:
            self.attempt(node.body)
            self.attempt(node.orelse)
            raise Unknown
        return self.value(node.body if test else node.orelse)

    def _of_namedexpr(self, node: ast.NamedExpr) -> Any:
        value = self.value(node.value)
        self.assign(node.target, value)
        return value

    def _of_joinedstr(self, node: ast.JoinedStr) -> Any:
        parts = [self.attempt(part) for part in node.values]
        return self.apply(lambda *given: "".join(given), *parts) if known(*parts) else no_value()

    def _of_formattedvalue(self, node: ast.FormattedValue) -> Any:
        value = self.value(node.value)
        spec = self.value(node.format_spec) if node.format_spec else ""
        if len(spec) > 12 or any(len(run) > 3 for run in _digit_runs(spec)):
            raise Unknown
        shown = _CONVERSIONS.get(node.conversion, _as_is)
        return self.apply(lambda given: format(shown(given), spec), value)

    def _of_tuple(self, node: ast.Tuple) -> Any:
        return tuple(self._of_list(node))

    def _of_list(self, node: ast.List | ast.Tuple | ast.Set) -> Any:
        values: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                many = self.attempt(element.value)
                values += many if isinstance(many, list | tuple) else [UNKNOWN]
            else:
                values.append(self.attempt(element))
        return bounded(values) if known(*values) else no_value()

    _of_set = _of_list

    def _of_dict(self, node: ast.Dict) -> Any:
        keys = [self.attempt(key) for key in node.keys]
        values = [self.attempt(value) for value in node.values]
        if not known(*keys, *values):
            raise Unknown
        return self.apply(lambda a, b: dict(zip(a, b, strict=True)), keys, values)

    def _of_subscript(self, node: ast.Subscript) -> Any:
        value, key = self.attempt(node.value), self.attempt(node.slice)
        if not known(value, key):
            raise Unknown
        parts = (key.start, key.stop, key.step) if isinstance(key, slice) else None
        if parts is not None:
            return self.apply(lambda many, *bounds: many[slice(*bounds)], value, *parts)
        return self.apply(lambda many, one: many[one], value, key)

    def _of_slice(self, node: ast.Slice) -> Any:
        bounds = (node.lower, node.upper, node.step)
        return slice(*(None if bound is None else self.value(bound) for bound in bounds))

    def _of_lambda(self, node: ast.Lambda) -> Any:
        self.attempt(node.body)
        return Function(node)

    def _of_listcomp(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        return bounded(list(self._comprehend(node.generators, node.elt)))

    _of_setcomp = _of_listcomp
    _of_generatorexp = _of_listcomp

    def _comprehend(
        self, generators: Sequence[ast.comprehension], element: ast.expr
    ) -> Iterator[Any]:
        items = self.iterable(generators[0].iter)
        if items is None:
            self.attempt(element)
            raise Unknown
        for item in items:
            self.assign(generators[0].target, item)
            if all(self.value(test) for test in generators[0].ifs):
                if len(generators) > 1:
                    yield from self._comprehend(generators[1:], element)
                else:
                    yield self.value(element)

    def _of_call(self, node: ast.Call) -> Any:
        values = self._arguments(node.args)
        named = {k.arg: self.attempt(k.value) for k in node.keywords}
        target = node.func
        owner = self.attempt(target.value) if isinstance(target, ast.Attribute) else UNKNOWN
        if values is None or None in named or not known(*values, *named.values()):
            raise Unknown
        keywords = {str(name): value for name, value in named.items()}
        if isinstance(target, ast.Attribute) and owner is not UNKNOWN:
            method = METHODS.get((type(owner), target.attr))
            return self.apply(method, owner, *values, **keywords) if method else no_value()
        full = self.full_name(target)
        if full in ("map", "filter") and len(values) == 2:
            return self._map(full, *values)
        function: Callable[..., Any] | None = BUILTINS.get(full) or FUNCTIONS.get(full)
        if function is not None:
            return self.apply(function, *values, **keywords)
        callee = self.attempt(target)
        return (
            self.run_function(callee, values, named) if isinstance(callee, Function) else no_value()
        )

    def _arguments(self, nodes: Sequence[ast.expr]) -> list[Any] | None:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                many = self.attempt(node.value)
                if not isinstance(many, list | tuple):
                    return None
                values += many
            elif isinstance(node, ast.Name) and self.full_name(node) in BUILTINS:
                values.append(Builtin(node.id))
            else:
                values.append(self.attempt(node))
        return values

    def _map(self, kind: str, function: Any, many: Any) -> Any:
        if not isinstance(many, str | bytes | list | tuple | range | dict | set | frozenset):
            raise Unknown
        items = list(many)
        results = [self._apply_to(function, item) for item in items]
        if kind == "map":
            return results
        return [item for item, keep in zip(items, results, strict=True) if keep]

    def _apply_to(self, function: Any, item: Any) -> Any:
        self.spend()
        if isinstance(function, Builtin):
            return self.apply(BUILTINS[function.name], item)
        if isinstance(function, Function):
            return self.run_function(function, [item], {})
        raise Unknown


def _as_is(value: Any) -> Any:
    return value


_CONVERSIONS: dict[int, Callable[[Any], Any]] = {114: repr, 97: ascii, 115: str}
"""`!r`, `!a` and `!s` of an f-string."""


def _digit_runs(text: str) -> list[str]:
    return "".join(c if c.isdigit() else " " for c in text).split()
