"""Ways to disguise a copy, as a copier would: none of them knows the detector.

Each takes a source and a generator and gives another source that does the same. They work
on `ast` and `ast.unparse` alone, so the result is always reformatted and without comments.
"""

from __future__ import annotations

import ast
import builtins
import random
import re
from collections.abc import Callable

Disguise = Callable[[str, random.Random], str]
_KEPT = frozenset({"agent_main", "problem_data", "self", "cls", *dir(builtins)})
_SYLLABLES = ("ka", "lo", "mi", "ta", "ne", "ru", "so", "pi", "da", "wu", "ge", "xo")


_NAMED = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar),
)


def _fresh(rng: random.Random, taken: set[str]) -> str:
    while True:
        name = "".join(rng.choices(_SYLLABLES, k=rng.randint(2, 4)))
        if rng.random() < 0.3:
            name += f"_{rng.choice(_SYLLABLES)}{rng.randint(1, 99)}"
        if name not in taken:
            taken.add(name)
            return name


def _bound_names(tree: ast.AST) -> tuple[set[str], set[str]]:
    """Every name that the file itself makes: variables and parameters; methods and fields."""
    names: set[str] = set()
    fields: set[str] = set()
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, _NAMED) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            fields.add(node.attr)
        elif isinstance(node, ast.alias):
            imported.add((node.asname or node.name).partition(".")[0])
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.FunctionDef):
                    fields.add(part.name)
                elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    fields.add(part.target.id)
    own = {n for n in names - imported - _KEPT if not n.startswith("__")}
    return own, {n for n in fields - imported - _KEPT if not n.startswith("__")}


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: dict[str, str], fields: dict[str, str]) -> None:
        self._names = names
        self._fields = fields

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        for field, known in (("id", self._names), ("arg", self._names), ("attr", self._fields)):
            value = getattr(node, field, None)
            if isinstance(value, str) and value in known:
                setattr(node, field, known[value])
        if not isinstance(node, ast.alias) and isinstance(getattr(node, "name", None), str):
            node.name = self._names.get(node.name, node.name)  # type: ignore[attr-defined]
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self._names.get(n, n) for n in node.names]
        return node


def rename(source: str, rng: random.Random) -> str:
    """All names of the author's own; what is both a variable and a field gets one new name."""
    tree = ast.parse(source)
    taken = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names, fields = _bound_names(tree)
    fresh = {name: _fresh(rng, taken) for name in sorted(names | fields)}
    return ast.unparse(
        _Renamer({n: fresh[n] for n in names | fields}, {n: fresh[n] for n in fields}).visit(tree)
    )


def reformat(source: str, rng: random.Random) -> str:
    """Other indentation, no comments, blank lines elsewhere."""
    lines = ast.unparse(ast.parse(source)).split("\n")
    if not any('"""' in line or "'''" in line or "\\n" in line for line in lines):
        lines = [re.sub(r"^ +", lambda m: m[0] * 2, line) for line in lines]
    return "\n".join(lines)


def comment(source: str, rng: random.Random) -> str:
    """A comment after many statements, and docstrings in every function."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            words = " ".join(rng.choices(_SYLLABLES, k=8))
            node.body.insert(0, ast.Expr(ast.Constant(f"Does {words}.")))
    text = ast.unparse(ast.fix_missing_locations(tree))
    return f"# written from scratch\n{text}\n# end of file\n"


def reorder(source: str, rng: random.Random) -> str:
    """Functions, classes and methods in another order, keyword arguments too."""
    tree = ast.parse(source)
    _shuffle(tree, rng)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            _shuffle(node, rng)
        elif isinstance(node, ast.Call) and all(k.arg for k in node.keywords):
            rng.shuffle(node.keywords)
    return ast.unparse(tree)


def _shuffle(node: ast.Module | ast.ClassDef, rng: random.Random) -> None:
    """Plain functions only: what has decorators or defaults may need its place."""
    places = [
        i
        for i, s in enumerate(node.body)
        if isinstance(s, ast.FunctionDef) and not s.decorator_list and not s.args.defaults
    ]
    moved = [node.body[i] for i in places]
    rng.shuffle(moved)
    for place, statement in zip(places, moved, strict=True):
        node.body[place] = statement


class _Padder(ast.NodeTransformer):
    """Puts statements that change nothing between others."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    def _dead(self) -> list[ast.stmt]:
        name = f"unused_{self._rng.randint(1, 9999)}"
        number = self._rng.randint(2, 99)
        text = self._rng.choice(
            (
                f"{name} = {number} * 3 + len('pad')",
                f"if {number} < 0:\n    {name} = [str(n) for n in range({number})]",
                f"{name} = {{'k': {number}}}\n{name}_b = sorted({name})",
                f"for {name} in range(0):\n    print({name})",
                f"assert {number} > 0",
                f"try:\n    {name} = int('{number}')\nexcept ValueError:\n    {name} = 0",
                f"print('step', {number})",
            )
        )
        return ast.parse(text).body

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node, ast.FunctionDef | ast.For | ast.While | ast.If | ast.With):
            body: list[ast.stmt] = []
            for statement in node.body:
                if self._rng.random() < self._share:
                    body += self._dead()
                body.append(statement)
            node.body = body
        return node


def dead_code(source: str, rng: random.Random) -> str:
    """Statements that do nothing, between a third of all; functions that nobody calls."""
    tree = ast.parse(source)
    _Padder(rng, 0.35).visit(tree)
    for _ in range(6):
        name = _fresh(rng, set())
        text = f"""
def {name}(a, b=3):
    total = 0
    for i in range(b):
        total += a * i if i % 2 else a - i
        if total > {rng.randint(10, 999)}:
            return [total, i]
    return {{'a': a, 'b': b, 'total': total}}
"""
        tree.body.insert(rng.randrange(len(tree.body)), ast.parse(text).body[0])
    futures = [s for s in tree.body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    tree.body = futures + [s for s in tree.body if s not in futures]
    return ast.unparse(ast.fix_missing_locations(tree))


class _Constants(ast.NodeTransformer):
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, bool):
            return node
        if isinstance(node.value, int) and node.value > 2:
            return ast.Constant(node.value + self._rng.randint(1, 5))
        if isinstance(node.value, float):
            return ast.Constant(round(node.value * self._rng.uniform(0.8, 1.3), 3))
        return node


def constants(source: str, rng: random.Random) -> str:
    """Other numbers: limits, time-outs, weights."""
    return ast.unparse(_Constants(rng).visit(ast.parse(source)))


class _Reworder(ast.NodeTransformer):
    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and len(node.value.split()) > 12:
            words = re.split(r"(\s+)", node.value)
            for i in range(0, len(words), 2):
                if words[i].isalpha() and self._rng.random() < self._share:
                    words[i] = self._rng.choice(
                        ("really", "simply", "carefully", "thing", "always")
                    )
            return ast.Constant("".join(words))
        return node


def reword(source: str, rng: random.Random) -> str:
    """One word in ten of the longer texts."""
    return ast.unparse(_Reworder(rng, 0.1).visit(ast.parse(source)))


class _Rewriter(ast.NodeTransformer):
    """Other ways to write the same."""

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name):
            return node
        left = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], ast.BinOp(left, node.op, node.value), lineno=node.lineno)

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if node.orelse and not isinstance(node.orelse[0], ast.If):
            test = ast.UnaryOp(ast.Not(), node.test)
            return ast.If(test, node.orelse, node.body)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        turned = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}
        if len(node.ops) == 1 and type(node.ops[0]) in turned:
            kind = turned[type(node.ops[0])]
            return ast.Compare(node.comparators[0], [kind()], [node.left])
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        return ast.Assign([node.target], node.value, lineno=node.lineno)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return node


def rewrite(source: str, rng: random.Random) -> str:
    """`x += 1` as `x = x + 1`, `a < b` as `b > a`, branches turned, no annotations."""
    plain = [n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ClassDef)]
    tree = ast.parse(source)
    if plain:  # the fields of dataclasses need their annotations
        for statement in tree.body:
            if isinstance(statement, ast.FunctionDef):
                _Rewriter().visit(statement)
        return ast.unparse(ast.fix_missing_locations(tree))
    return ast.unparse(ast.fix_missing_locations(_Rewriter().visit(tree)))


def cut(source: str, rng: random.Random) -> str:
    """Without a third of its functions, calls of which are left out too (it need not run)."""
    tree = ast.parse(source)
    plain = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name != "agent_main"]
    gone = {s.name for s in rng.sample(plain, len(plain) // 3)}
    tree.body = [s for s in tree.body if getattr(s, "name", None) not in gone]
    return ast.unparse(tree)


def merge(source: str, other: str, rng: random.Random) -> str:
    """Two files in one: the second's `agent_main` becomes a fallback of the first's."""
    first, second = ast.parse(source), ast.parse(rename(other, rng))
    _Renamer({"agent_main": "second_opinion"}, {}).visit(second)
    for statement in first.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "agent_main":
            statement.name = "first_opinion"
    text = """
def agent_main(problem_data):
    try:
        return first_opinion(problem_data)
    except Exception:
        return second_opinion(problem_data)
"""
    bodies = [*first.body, *second.body, *ast.parse(text).body]
    heads = [s for s in bodies if isinstance(s, ast.Import | ast.ImportFrom)]
    heads.sort(key=lambda s: getattr(s, "module", "") != "__future__")
    return ast.unparse(ast.Module(heads + [s for s in bodies if s not in heads], []))


DISGUISES: dict[str, Disguise] = {
    f.__name__: f
    for f in (rename, reformat, comment, reorder, dead_code, constants, reword, rewrite, cut)
}


def disguise(source: str, names: tuple[str, ...], rng: random.Random) -> str:
    """Several, one after the other."""
    for name in names:
        source = DISGUISES[name](source, rng)
    return source
