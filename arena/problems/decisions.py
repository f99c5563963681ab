"""What an operator or the calendar decides about problems in the bank, as events.

Each function looks at the bank, changes nothing, and returns what is to be appended to the
stream `bank` and applied. What is done already gives no event; what the rules forbid raises
BankError with a code of `holdings`. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from arena.exceptions import BankError
from arena.journal import Event
from arena.problems.bank import OPENED, RACED, RETIRED, Bank
from arena.problems.holdings import MEETS_SUITE, NOT_DRAWABLE
from arena.problems.pools import Pool
from scoring.types import Json, JsonObject

MAX_REASON = 500


def retire(bank: Bank, problem_ids: Iterable[str], reason: str, at: datetime) -> list[Event]:
    """Take problems out of use for good. The rest of their clusters stays.

    Raises BankError for an unknown problem and for a suite's.
    """
    bank.check_clock(at)
    if not reason.strip():
        raise BankError("a problem is retired for a reason", remedy="--reason TEXT")
    leaving: list[Json] = []
    for problem_id in dict.fromkeys(problem_ids):
        holding = bank.need(problem_id)
        if holding.pool.is_suite:
            raise BankError(
                f"problem {problem_id[:80]} is of {holding.pool}: suites stand for good",
                code=MEETS_SUITE,
            )
        if not holding.retired:
            leaving.append(problem_id)
    data: JsonObject = {"problems": leaving, "reason": reason.strip()[:MAX_REASON]}
    return [Event(RETIRED, at, data)] if leaving else []


def open_clusters(bank: Bank, problem_ids: Iterable[str], reason: str, at: datetime) -> list[Event]:
    """Open held-out problems, each with its whole cluster: what is known of one is known of all.

    Raises BankError for a problem that is neither held out nor open.
    """
    bank.check_clock(at)
    opening: dict[str, None] = {}
    for problem_id in dict.fromkeys(problem_ids):
        holding = bank.need(problem_id)
        cluster = bank.cluster(holding.cluster)
        if holding.pool is Pool.OPEN:
            continue
        if holding.pool is not Pool.HELD_OUT or cluster is None:
            raise BankError(
                f"problem {problem_id[:80]} is in {holding.pool}: only held-out ones are opened",
                code=NOT_DRAWABLE,
            )
        opening |= cluster.live
    data: JsonObject = {"problems": list[Json](opening), "reason": reason.strip()[:MAX_REASON]}
    return [Event(OPENED, at, data)] if opening else []


def mark_raced(bank: Bank, problem_ids: Iterable[str], race_id: str, at: datetime) -> list[Event]:
    """Note a draw, at the draw: from then on nothing of these clusters is drawn again.

    All problems of a race at once, so that it may have two of one cluster. Problems that
    this race has drawn already are passed over. Raises BankError (`bank.not_drawable`) for
    one that is not among `bank.drawable()`.
    """
    bank.check_clock(at)
    drawn: list[Json] = []
    for problem_id in dict.fromkeys(problem_ids):
        holding = bank.need(problem_id)
        if race_id in holding.raced:
            continue
        cluster = bank.cluster(holding.cluster)
        if holding.pool is not Pool.HELD_OUT or cluster is None or cluster.exposed:
            raise BankError(
                f"problem {problem_id[:80]} cannot be raced: it is in {holding.pool}, or its "
                "cluster was open or raced before",
                code=NOT_DRAWABLE,
            )
        drawn.append(problem_id)
    return [Event(RACED, at, {"race_id": race_id, "problems": drawn})] if drawn else []
