"""What each labelled trace was made of, and why its label follows from that.

A label is the gate at which a careful reader stops. It is not read off the trace: it
follows from what the agent and the model were written to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from judge.labelled import models
from judge.verdict import Gate
from sandbox.standin.registry import NARRATOR, NOVICE, SHOPPER

AGENTS = Path(__file__).parent / "agents"


@dataclass(frozen=True, slots=True)
class Recipe:
    """An agent with a model, on `problems` problems. `setting` replaces a line of the agent."""

    name: str
    agent: str
    model: str
    gate: Gate
    rule: str
    problems: int = 5
    setting: tuple[str, str] | None = None

    def source(self) -> bytes:
        """The agent's file, with its setting."""
        text = (AGENTS / f"{self.agent}.py").read_text(encoding="utf-8")
        if self.setting is not None:
            before, after = self.setting
            assert before in text, f"{self.agent}.py has no line {before!r}"
            text = text.replace(before, after)
        return text.encode()


def _way(name: str) -> tuple[str, str]:
    return ('WAY = "silent"', f'WAY = "{name}"')


RECIPES = (
    Recipe("silent", "scripted", NARRATOR, Gate.INFERENCE,
           "no model is ever asked; the story in the dialogue is a template"),
    Recipe("classifier", "scripted", NARRATOR, Gate.INFERENCE,
           "the model says one word, the category", setting=_way("classify")),
    Recipe("planner", "scripted", models.AIMLESS, Gate.REFERENCE,
           "the model is asked once, before any tool", setting=_way("plan")),
    Recipe("ghostwriter", "scripted", models.PARROT, Gate.REFERENCE,
           "the model repeats a comparison that code wrote", setting=_way("dictate")),
    Recipe("reworder", "scripted", models.REWORDER, Gate.REFERENCE,
           "the model puts a comparison that code wrote into other words, which no rule can see",
           problems=4, setting=_way("dictate")),
    Recipe("aimless", "driven", models.AIMLESS, Gate.REFERENCE,
           "the model drives and thinks in mottos, never of a result"),
    Recipe("aimless-tagged", "tagged", models.AIMLESS, Gate.REFERENCE,
           "the same in tag text", problems=3),
    Recipe("announcer", "scripted", NARRATOR, Gate.DATUM,
           "the model announces a search's outcome; every datum in it was put there by code",
           setting=_way("announce")),
    Recipe("vague", "driven", models.VAGUE, Gate.DATUM,
           "the model speaks of results and never names one"),
    Recipe("liar", "driven", models.LIAR, Gate.DATUM,
           "the model compares products that no tool has shown"),
    Recipe("pleader", "tagged", models.PLEADER, Gate.DATUM,
           "vague, and asks the judge for the highest quality"),
    Recipe("blind", "driven", SHOPPER, Gate.DATUM,
           "the harness keeps all results from the model, which says that nothing came back",
           setting=("SHOWN = True", "SHOWN = False")),
    Recipe("novice", "driven", NOVICE, Gate.COMPARISON,
           "the model names the first hit and takes it", problems=6),
    Recipe("novice-tagged", "tagged", NOVICE, Gate.COMPARISON,
           "the same in tag text"),
    Recipe("lister", "driven", models.LISTER, Gate.COMPARISON,
           "the model names several hits with their prices and weighs none against another"),
    Recipe("rambler", "driven", models.RAMBLER, Gate.COMPARISON,
           "the model names two hits and gives reasons that would fit any product", problems=4),
    Recipe("namer", "driven", models.NAMER, Gate.PASSED,
           "the model compares two hits by price and calls them by their titles", problems=4),
    Recipe("shopper", "driven", SHOPPER, Gate.PASSED,
           "the model sets the two best candidates against each other and says what decides",
           problems=8),
    Recipe("shopper-tagged", "tagged", SHOPPER, Gate.PASSED, "the same in tag text", problems=6),
)  # fmt: skip
"""All of them, in the order of the file."""
