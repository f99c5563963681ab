"""What a file's own code makes of its constants: a small, bounded interpreter.

It follows assignments, loops over constants and the file's own functions, in listed pure
operations alone, and so reveals text that is put together from pieces: names spelled by
`chr`, ids cut in two, tables behind a decoder. It calls nothing of the file's choosing.
What it cannot follow it leaves out: it shows more of a file, and no rule rests on its
seeing everything. Standard library only.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from arena.submissions.evaluation import (
    UNKNOWN,
    Evaluator,
    Function,
    SpentError,
    no_value,
)
from arena.submissions.operations import Unknown
from arena.submissions.scopes import Scopes

MAX_CALLS = 8
"""Depth of calls of the file's own functions."""


class _ReturnSignal(Exception):  # noqa: N818 - no error
    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _LoopSignal(Exception):  # noqa: N818 - no error
    def __init__(self, goes_on: bool) -> None:
        super().__init__()
        self.goes_on = goes_on


class Folder(Evaluator):
    """Reads one file: the top level first, then every function with its parameters unknown."""

    def __init__(self, tree: ast.Module, scopes: Scopes) -> None:
        super().__init__(scopes)
        self._calls = 0
        self._deferred: list[Sequence[ast.stmt]] = [tree.body]
        try:
            while self._deferred:
                self._block(self._deferred.pop(0))
        except SpentError:
            pass

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            try:
                self._statement(statement)
            except (Unknown, RecursionError, _ReturnSignal, _LoopSignal):
                continue

    def _statement(self, node: ast.stmt) -> None:
        """A statement as it is met once, whatever its conditions are."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._define(node)
        elif isinstance(node, ast.ClassDef):
            for part in (*node.decorator_list, *node.bases):
                self.attempt(part)
            self._block(node.body)
        elif isinstance(node, ast.For) and (items := self.iterable(node.iter)) is not None:
            for item in items:
                self.assign(node.target, item)
                self._block(node.body)
            self._block(node.orelse)
        else:
            self._simple(node)
            for name in ("body", "orelse", "finalbody"):
                self._block(getattr(node, name, ()))
            for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                self._block(inner.body)

    def _simple(self, node: ast.stmt) -> None:
        """Evaluate the expressions of a statement and assign."""
        if isinstance(node, ast.Assign):
            value = self.attempt(node.value)
            for target in node.targets:
                self.assign(target, value)
        elif isinstance(node, ast.AnnAssign):
            self.assign(node.target, self.attempt(node.value))
        elif isinstance(node, ast.AugAssign):
            self._augment(node)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.attempt(child)
                elif isinstance(child, ast.withitem):
                    self.attempt(child.context_expr)

    def _augment(self, node: ast.AugAssign) -> None:
        value = right = self.attempt(node.value)
        if not isinstance(node.target, ast.Name):
            return
        try:
            left = self.lookup(self._scopes.of(node.target), node.target.id)
            value = self.operate(node.op, left, right)
            self.note(node.value, value, place=node)
        except Unknown:
            value = UNKNOWN
        self.assign(node.target, value)

    def _define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A function: its parameters have their defaults' values, as far as one can tell."""
        given, inner = node.args, self._scopes.inner[id(node)]
        for decorator in node.decorator_list:
            self.attempt(decorator)
        positional = [*given.posonlyargs, *given.args]
        late = positional[len(positional) - len(given.defaults) :]
        pairs = [
            *zip(late, given.defaults, strict=True),
            *zip(given.kwonlyargs, given.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if default is not None:
                self.frame(inner)[argument.arg] = self.attempt(default)
        if isinstance(node, ast.FunctionDef):
            self.store(self._scopes.of(node), node.name, Function(node))
        self._deferred.append(node.body)

    def run_function(self, function: Function, values: Sequence[Any], named: dict[Any, Any]) -> Any:
        """Call one of the file's own functions with known arguments. Raises Unknown."""
        given, inner = function.node.args, self._scopes.inner[id(function.node)]
        names = [a.arg for a in (*given.posonlyargs, *given.args)]
        too_many = len(values) > len(names) and not given.vararg
        if self._calls >= MAX_CALLS or given.kwarg or too_many:
            raise Unknown
        frame = self.frame(inner)
        saved = dict(frame)
        self.spend(1 + len(saved) // 8)
        frame.update(zip(names, values, strict=False))
        frame.update(named)
        if given.vararg:
            frame[given.vararg.arg] = tuple(values[len(names) :])
        self._calls += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.value(function.node.body)
            self._concrete(function.node.body)
        except _ReturnSignal as signal:
            return signal.value
        except _LoopSignal:
            raise Unknown from None
        finally:
            self._calls -= 1
            frame.clear()
            frame.update(saved)
        return None

    def _concrete(self, body: Sequence[ast.stmt]) -> None:
        """Statements of a called function: every condition has to be known."""
        for node in body:
            self.spend()
            if isinstance(node, ast.Return):
                raise _ReturnSignal(self.value(node.value) if node.value else None)
            if isinstance(node, ast.If):
                self._concrete(node.body if self.value(node.test) else node.orelse)
            elif isinstance(node, ast.For):
                items = self.iterable(node.iter)
                for item in items if items is not None else no_value():
                    self.assign(node.target, item)
                    if self._round(node.body):
                        break
            elif isinstance(node, ast.While):
                while self.value(node.test):
                    if self._round(node.body):
                        break
            elif isinstance(node, ast.Break | ast.Continue):
                raise _LoopSignal(isinstance(node, ast.Continue))
            elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
                self._simple(node)
            elif not isinstance(node, ast.Pass):
                raise Unknown

    def _round(self, body: Sequence[ast.stmt]) -> bool:
        """One round of a loop; whether it breaks."""
        try:
            self._concrete(body)
        except _LoopSignal as signal:
            return not signal.goes_on
        return False
