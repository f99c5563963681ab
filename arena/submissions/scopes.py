"""Which binding a name refers to: Python's scoping rules over a syntax tree.

Standard library only. (`symtable` knows the same, but not for which node.)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What binds a name."""

    MODULE = "import"
    IMPORTED = "from"
    PARAMETER = "parameter"
    DEFINITION = "definition"
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Binding:
    """One binding of a name.

    `module` and `name`: of what was imported; `value`: of an assignment; `each`: the
    collection that a loop takes the name's values from.
    """

    kind: Kind
    module: str = ""
    name: str = ""
    value: ast.expr | None = None
    each: ast.expr | None = None


MAX_BINDINGS = 32
"""Values of one name that are told apart: no file makes the reading quadratic."""
_MANY = Binding(Kind.VALUE)


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class, function or comprehension."""

    node: ast.AST
    parent: Scope | None
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    outer: dict[str, bool] = field(default_factory=dict)
    """Names declared global (True) or nonlocal (False)."""

    @property
    def is_class(self) -> bool:
        """Names of a class body are not seen by its methods."""
        return isinstance(self.node, ast.ClassDef)

    def bind(self, name: str, binding: Binding) -> None:
        """Note a binding in the scope that it belongs to."""
        bindings = self._home(name).bindings.setdefault(name, [])
        if binding.kind is not Kind.VALUE:
            if binding not in bindings:
                bindings.insert(0, binding)
        elif len(bindings) < MAX_BINDINGS:
            bindings.append(binding)
        elif bindings[-1] != _MANY:
            bindings.append(_MANY)

    def _home(self, name: str) -> Scope:
        if name not in self.outer:
            return self
        if self.outer[name]:
            return self.root
        scope = self.parent
        while scope is not None and (scope.is_class or name not in scope.bindings):
            scope = scope.parent
        return scope or self.root

    @property
    def root(self) -> Scope:
        """The module."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def resolve(self, name: str) -> Scope | None:
        """The scope that binds a name as seen from here; None: a builtin, or nothing."""
        if name in self.outer:
            home = self._home(name)
            return home if name in home.bindings else None
        scope: Scope | None = self
        here = True
        while scope is not None:
            if name in scope.bindings and (here or not scope.is_class):
                return scope
            # A comprehension in a class body stands for the class body itself.
            here = here and isinstance(scope.node, _COMPREHENSIONS)
            scope = scope.parent
        return None

    def bound(self, name: str) -> list[Binding]:
        """All bindings that a name may have as seen from here."""
        scope = self.resolve(name)
        return scope.bindings[name] if scope else []


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Scopes:
    """The scopes of a file, and the one that each node stands in."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(tree, None)
        self._of: dict[int, Scope] = {}
        self.inner: dict[int, Scope] = {id(tree): self.module}
        """Node that opens a scope → that scope."""
        self._declare(tree, self.module)
        self._visit(tree, self.module)

    def of(self, node: ast.AST) -> Scope:
        """The scope that a node stands in."""
        return self._of.get(id(node), self.module)

    def _declare(self, node: ast.AST, scope: Scope) -> None:
        """Global and nonlocal statements hold for the whole of their function."""
        for child in _same_scope(node):
            if isinstance(child, ast.Global | ast.Nonlocal):
                scope.outer.update(dict.fromkeys(child.names, isinstance(child, ast.Global)))

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self._of[id(child)] = scope
            if isinstance(child, (*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)):
                self._open(child, scope)
            else:
                _bind(child, scope)
                self._visit(child, scope)

    def _open(self, node: ast.AST, scope: Scope) -> None:
        inner = Scope(node, scope)
        self.inner[id(node)] = inner
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            scope.bind(node.name, Binding(Kind.DEFINITION))
        if not isinstance(node, _COMPREHENSIONS):
            self._declare(node, inner)
        if isinstance(node, _FUNCTIONS):
            for argument in _arguments(node.args):
                inner.bind(argument.arg, Binding(Kind.PARAMETER))
        for name, value in ast.iter_fields(node):
            inside = name in ("body", "generators", "elt", "key", "value")
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self._enter(child, inner if inside else scope)

    def _enter(self, node: ast.AST, scope: Scope) -> None:
        """Visit a node itself and what is below it."""
        self._of[id(node)] = scope
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef, *_COMPREHENSIONS)):
            self._open(node, scope)
        else:
            _bind(node, scope)
            self._visit(node, scope)


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    stack = list(ast.iter_child_nodes(node))
    while stack:
        child = stack.pop()
        yield child
        if not isinstance(child, (*_FUNCTIONS, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(child))


def _arguments(arguments: ast.arguments) -> Iterator[ast.arg]:
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from (a for a in (arguments.vararg, arguments.kwarg) if a is not None)


def _bind(node: ast.AST, scope: Scope) -> None:
    """Note what one node binds."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            shown = alias.asname or alias.name.partition(".")[0]
            module = alias.name if alias.asname else shown
            scope.bind(shown, Binding(Kind.MODULE, module))
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            binding = Binding(Kind.IMPORTED, node.module or "", alias.name)
            scope.bind(alias.asname or alias.name, binding)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            _bind_target(target, scope, node.value)
    elif isinstance(node, ast.AnnAssign):
        if node.value is not None:
            _bind_target(node.target, scope, node.value)
    elif isinstance(node, ast.NamedExpr):
        home: Scope = scope
        while isinstance(home.node, _COMPREHENSIONS) and home.parent is not None:
            home = home.parent
        home.bind(node.target.id, Binding(Kind.VALUE, value=node.value))
    elif isinstance(node, ast.AugAssign):
        _bind_target(node.target, scope, None)
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        if isinstance(node.target, ast.Name):
            scope.bind(node.target.id, Binding(Kind.VALUE, each=node.iter))
        else:
            _bind_target(node.target, scope, None)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        _bind_target(node.optional_vars, scope, None)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        scope.bind(node.name, Binding(Kind.VALUE))
    elif isinstance(node, ast.MatchMapping) and node.rest:
        scope.bind(node.rest, Binding(Kind.VALUE))


def _bind_target(target: ast.expr, scope: Scope, value: ast.expr | None) -> None:
    if isinstance(target, ast.Name):
        scope.bind(target.id, Binding(Kind.VALUE, value=value))
    elif isinstance(target, ast.Starred):
        _bind_target(target.value, scope, None)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            _bind_target(element, scope, None)
