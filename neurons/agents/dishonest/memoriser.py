"""Knows the open problems by heart, and guesses where it does not.

What the arena does about it: the gate finds the table of answers. And if it did not, the
race is run on problems that were never open, drawn after qualifying had closed: what it
knows by heart is not asked.
"""

from typing import Any

from arena_client import ArenaClient  # type: ignore[import-not-found]

KEY_CHARS = 120
ANSWERS: dict[str, str] = {}
"""The beginning of a query → product ids. `making.memoriser` fills it in."""


class Rememberer:
    """Looks a query up in the table; without an entry it takes the first hit."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.arena = ArenaClient()

    def answer(self) -> list[str]:
        """Product ids, by heart or by guess."""
        known = ANSWERS.get(self.query[:KEY_CHARS], "")
        guess = self.arena.find_product(self.query[:200])[:1]
        return known.split(",") if known else [hit["product_id"] for hit in guess]

    def finish(self, product_ids: list[str]) -> None:
        """Say it and leave."""
        if product_ids:
            self.arena.recommend_product(product_ids)
        self.arena.terminate("success" if product_ids else "failure")


def agent_main(problem_data: dict[str, str]) -> list[dict[str, Any]]:
    """Remember or guess. What it did stands in the gateway's trace; it says nothing itself."""
    mind = Rememberer(problem_data["query"])
    mind.finish(mind.answer())
    return []
