"""The credit ledger: each emission pays for one dispatch, once, while its turn lasts."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from enum import Enum

from sandbox.provenance.calls import CHECK, FIND, VIEW, Call
from sandbox.provenance.coverage import (
    Cover,
    RelaxationCover,
    SameShopCover,
    cover_for,
    relaxations_of,
)
from sandbox.provenance.emissions import Emission
from scoring.types import Json

MAX_SHOP_COVERS = 64
"""Emitted find_products_in_same_shop calls in flight at once; the oldest give way."""


class State(Enum):
    """The life of a credit. It leaves `OPEN` once."""

    OPEN = "open"
    PAID = "paid"
    COVERING = "covering"
    EXPIRED = "expired"


@dataclass(slots=True, eq=False)
class Credit:
    """One emission's worth: it pays its own dispatch, or covers what its tool does."""

    emission: Emission
    cover: Cover | None
    relaxations: RelaxationCover | None = None
    state: State = State.OPEN

    def covers(self, call: Call) -> Cover | None:
        """The part of this credit that covers `call`, if any."""
        if self.state is State.EXPIRED:
            return None
        if self.relaxations is not None and self.relaxations.accepts(call):
            return self.relaxations
        if self.state is not State.PAID and self.cover is not None and self.cover.accepts(call):
            return self.cover
        return None


class Ledger:
    """Open credits, by call and by completion. Every operation is close to constant time."""

    def __init__(self) -> None:
        self._by_key: defaultdict[str, deque[Credit]] = defaultdict(deque)
        self._by_completion: defaultdict[int, list[Credit]] = defaultdict(list)
        self._checks: defaultdict[str, deque[Credit]] = defaultdict(deque)
        self._shops: deque[Credit] = deque(maxlen=MAX_SHOP_COVERS)
        self._relaxing: dict[str, Credit] = {}

    def credit(self, emission: Emission) -> None:
        """Open a credit for an emission. Calls that cannot be compared get none."""
        call = emission.call
        if call.key is None:
            return
        credit = Credit(emission, cover_for(call))
        self._by_key[call.key].append(credit)
        self._by_completion[emission.seq].append(credit)
        if call.name == CHECK:
            self._checks[call.text("product_id")].append(credit)
        elif isinstance(credit.cover, SameShopCover):
            self._shops.append(credit)

    def expire(self, completion: int) -> None:
        """Close all credits of a completion, and what they cover."""
        for credit in self._by_completion.pop(completion, ()):
            credit.state = State.EXPIRED

    def pay(self, call: Call) -> Credit | None:
        """Spend the oldest open credit for exactly this call."""
        waiting = self._by_key.get(call.key) if call.key is not None else None
        while waiting:
            credit = waiting.popleft()
            if credit.state is State.OPEN:
                credit.state = State.PAID
                return credit
        return None

    def cover(self, call: Call) -> tuple[Credit, Cover] | None:
        """The credit whose tool made this call, if one did. It can then not be paid out."""
        credit = self._covering(call)
        part = credit.covers(call) if credit else None
        if credit is None or part is None:
            return None
        part.take(call)
        if credit.state is State.OPEN:
            credit.state = State.COVERING
        return credit, part

    def answered(self, credit: Credit, call: Call, result: Json) -> None:
        """Note the answer of a paid dispatch: an empty search may be widened."""
        credit.relaxations = relaxing = relaxations_of(call, result)
        if relaxing is not None:
            for key in (relaxing.without_service, relaxing.two_words):
                if key is not None:
                    self._relaxing[key] = credit

    def _covering(self, call: Call) -> Credit | None:
        relaxing = self._relaxing.get(call.key) if call.key is not None else None
        if relaxing is not None and relaxing.covers(call):
            return relaxing
        if call.name == VIEW:
            checks = self._checks.get(call.text("product_ids"))
            while checks:
                if checks[0].covers(call):
                    return checks[0]
                checks.popleft()
        if call.name == FIND:
            return next((c for c in self._shops if c.covers(call)), None)
        return None
