"""Who races in the demonstration, and what each of them shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from arena.problems.suite import load_suite
from neurons.agents.dishonest.making import memoriser

AGENTS = Path(__file__).parent.parent / "agents"
DISHONEST = AGENTS / "dishonest"


@dataclass(frozen=True, slots=True)
class Contender:
    """An agent's file under its name, and what it does, for people."""

    name: str
    file: Path
    what: str


SHIPPED = (
    Contender("react", AGENTS / "react.py", "the model drives: searches, compares, recommends"),
    Contender("pipeline", AGENTS / "pipeline.py", "code drives, the model only narrates"),
    Contender("narrator", DISHONEST / "narrator.py", "decides as react, thinks by code"),
    Contender("first_hit", DISHONEST / "first_hit.py", "takes the first search hit"),
    Contender("hedger", DISHONEST / "hedger.py", "recommends again and again"),
    Contender("ventriloquist", DISHONEST / "ventriloquist.py", "makes the model say its calls"),
    Contender("spy", DISHONEST / "spy.py", "looks for the answer outside the catalogue"),
    Contender("glutton", DISHONEST / "glutton.py", "takes memory and processes until stopped"),
)
"""In the order in which they are submitted, before the memoriser and the copycat."""

MEMORISER = "memoriser"
COPYCAT = "copycat"


def contenders(home: Path, open_suite: Path) -> tuple[Contender, ...]:
    """All of them. The memoriser learns the open problems and is written to `home`."""
    learnt = home / "agents" / f"{MEMORISER}.py"
    learnt.parent.mkdir(exist_ok=True)
    learnt.write_text(memoriser(load_suite(open_suite).problems), encoding="utf-8")
    return (
        *SHIPPED,
        Contender(MEMORISER, learnt, "knows the open answers by heart"),
        Contender(COPYCAT, DISHONEST / "copycat.py", "react, with other names"),
    )
