"""Small agent files for simulated miners: written by somebody, improved, copied, merged.

A file is a list of *genes*, one for each of its functions; what a gene's function does
follows from the gene alone. How it is written down (names, order, comments, dead code)
follows from a style. Who rewrites another's file keeps its genes under a style of his own,
which is what real copies do. So whose work a file is, is known for certain. Pure.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from dataclasses import dataclass

from arena.submissions.fingerprints import Fingerprint, fingerprint
from arena.submissions.scopes import Scopes

FUNCTIONS = 3
STATEMENTS = 2
"""Small: the gate reads a thousand of them in a simulated year."""
_WORDS = ("price", "brand", "title", "size", "shop", "query", "score", "total", "page", "rank")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Work:
    """What a file does, however it is written: its genes, in the author's order."""

    genes: tuple[int, ...]

    @classmethod
    def new(cls, rng: random.Random) -> Work:
        """Something nobody wrote before."""
        return cls(tuple(rng.getrandbits(64) for _ in range(FUNCTIONS)))

    def improved(self, rng: random.Random) -> Work:
        """The same with one function written anew."""
        genes = list(self.genes)
        genes[rng.randrange(len(genes))] = rng.getrandbits(64)
        return Work(tuple(genes))

    def merged(self, other: Work) -> Work:
        """Two files joined."""
        return Work(self.genes + other.genes)


def written(work: Work, style: int) -> str:
    """The file. The same work and style give the same text; style 0 is the author's own."""
    rng = random.Random(f"style {style}")  # noqa: S311 - no secret
    order = list(range(len(work.genes)))
    if style:
        rng.shuffle(order)
    names = _Names(rng)
    functions = {place: names("step") for place in order}
    parts = ["import json", "import re", ""]
    for place in order:
        if style and rng.random() < 0.5:
            parts.append(f"# {' '.join(rng.choices(_WORDS, k=4))}")
        parts += [*_function(work.genes[place], functions[place], _Names(rng)), ""]
        if style and rng.random() < 0.3:
            parts += [f"{names('unused')} = {rng.randrange(1000)}", ""]
    parts.append("def agent_main(problem_data):")
    parts.append("    state = {'query': problem_data['query'], 'found': []}")
    parts += [f"    state = {functions[place]}(state, {place})" for place in range(len(order))]
    parts.append("    return state['found']")
    return "\n".join(parts) + "\n"


def fingerprint_of(source: str) -> Fingerprint:
    """What the gate compares of a file. Not the gate: its other rules are not looked at."""
    tree = ast.parse(source)
    strings = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return fingerprint(source.encode(), tree, Scopes(tree), strings)


class _Names:
    """Names of somebody's own choice, none twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._used = rng, 0

    def __call__(self, kind: str) -> str:
        self._used += 1
        return f"{kind}_{self._rng.choice(_WORDS)}_{self._used}"


def _function(gene: int, name: str, names: Callable[[str], str]) -> list[str]:
    rng = random.Random(gene)  # noqa: S311 - no secret
    state, place, kept = names("a"), names("b"), names("c")
    writer = _Writer(rng, [state, place, kept], names)
    lines = [f"def {name}({state}, {place}):", f"    {kept} = []"]
    for _ in range(STATEMENTS):
        lines += [f"    {line}" for line in writer.statement()]
    return [*lines, f"    {state}['found'] += {kept}", f"    return {state}"]


class _Writer:
    """Code at random, as different in its form as code of different people."""

    def __init__(self, rng: random.Random, known: list[str], names: Callable[[str], str]) -> None:
        self._rng, self._known, self._names = rng, known, names

    def statement(self) -> list[str]:
        """One statement that binds a name: plain, under a condition, or in a loop."""
        kind = self._rng.randrange(4)
        name, value = self._names("d"), self._value(2)
        if kind == 0:
            lines = [f"{name} = {value}"]
        elif kind == 1:
            lines = [f"{name} = {self._value(1)}", f"if {self._value(2)} > {self._value(1)}:"]
            lines.append(f"    {name} = {value}")
        elif kind == 2:
            lines = [f"for {name} in {value}:", f"    {self._known[2]}.append({self._value(2)})"]
        else:
            lines = [f"{name} = [{self._value(2)} for v in {value} if {self._value(1)} != v]"]
        self._known.append(name)
        return lines

    def _value(self, depth: int) -> str:
        rng = self._rng
        if depth == 0:
            return rng.choice((rng.choice(self._known), str(rng.randrange(2, 900)), self._word()))
        one, two = self._value(depth - 1), self._value(rng.randrange(depth))
        forms = (
            f"({one} {rng.choice('+-*')} {two})",
            f"max({one}, {two}, key=len)",
            f"({one} if {two} else {self._value(0)})",
            f"sorted({one})[{rng.randrange(9)}:{rng.randrange(9, 20)}]",
            f"json.loads({one}).get({self._word()}, {two})",
            f"re.findall({self._word()}, {one})",
            f"({one} and not {two})",
            f"{{{self._word()}: {one}, {self._word()}: {two}}}",
            f"str({one}).replace({self._word()}, str({two}))",
            f"[{one}, *{two}]",
            f"sum(map({rng.choice(('len', 'float', 'int'))}, {one}))",
            f"({one} in {two})",
        )
        return rng.choice(forms)

    def _word(self) -> str:
        return repr("".join(self._rng.choices(_LETTERS, k=7)))
