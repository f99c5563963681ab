"""The novice: takes the first hit of a plain search. A weak but honest shopper."""

from __future__ import annotations

from sandbox.standin import wording
from sandbox.standin.moves import Move, Plan, recommend, search, terminate
from sandbox.standin.needs import read_task
from sandbox.standin.weighing import read_hits
from sandbox.standin.words import keywords


def novice_plan(query: str) -> Plan:
    """Search once for each item, without filters, and recommend what comes first."""
    task = read_task(query)
    calls = tuple(search(keywords(need.text, 6) or "product") for need in task.needs)
    answers = yield Move(wording.opening(task), calls)
    firsts = [hits[0] for answer in answers if (hits := read_hits(answer))]
    if not firsts:
        yield Move("The searches found nothing.", (terminate("failure"),))
        return
    named = ", ".join(f"{c.product_id} {wording.quoted(c.title)} at {c.price:g}" for c in firsts)
    ids = [c.product_id for c in firsts]
    yield Move(f"The first hits are {named}. I take them.", (recommend(ids),))
    yield Move("The recommendation was taken.", (terminate("success"),), response="Done.")
