"""All texts that an expression can have, when they are written out. Standard library only.

Unlike `folding` this is certain: an answer holds every text that the expression can have,
or there is no answer.
"""

from __future__ import annotations

import ast

from arena.submissions.scopes import Kind, Scopes

MAX_DEPTH = 8


def spellings(node: ast.expr, scopes: Scopes, depth: int = 0) -> set[str] | None:
    """The texts of a literal, a choice of literals, or a name that is only ever one of them."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else None
    if isinstance(node, ast.IfExp):
        return _union([node.body, node.orelse], scopes, depth)
    if not isinstance(node, ast.Name):
        return None
    found: set[str] = set()
    bindings = scopes.of(node).bound(node.id)
    for binding in bindings:
        values: set[str] | None = None
        if binding.kind is Kind.VALUE and binding.value is not None:
            values = spellings(binding.value, scopes, depth + 1)
        elif binding.kind is Kind.VALUE and binding.each is not None:
            values = _each(binding.each, scopes, depth + 1)
        if values is None:
            return None
        found |= values
    return found if bindings else None


def _union(nodes: list[ast.expr], scopes: Scopes, depth: int) -> set[str] | None:
    found: set[str] = set()
    for node in nodes:
        values = spellings(node, scopes, depth + 1)
        if values is None:
            return None
        found |= values
    return found


def _each(node: ast.expr, scopes: Scopes, depth: int) -> set[str] | None:
    """The texts that a loop over a literal collection goes through.

    A collection behind a name has to be a tuple: a list may have grown since.
    """
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return _union(node.elts, scopes, depth)
    if isinstance(node, ast.Name) and depth <= MAX_DEPTH:
        bindings = scopes.of(node).bound(node.id)
        if len(bindings) == 1 and isinstance(bindings[0].value, ast.Tuple):
            return _union(bindings[0].value.elts, scopes, depth)
    return None


def safe_prefix(node: ast.expr) -> bool:
    """Whether a name made at run time begins with letters of its own, as in f"tool_{name}".

    No internal begins so, nor does a name of the modules that are allowed in part.
    """
    first: ast.expr | None = None
    if isinstance(node, ast.JoinedStr) and node.values:
        first = node.values[0]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        first = node.left
    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
        return False
    own = first.value.partition("%")[0]
    return len(own) >= 3 and own[0].isalpha() and "_" in own[1:]
