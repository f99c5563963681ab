"""What the validators set on chain, held against what follows from the standings."""

from __future__ import annotations

from dataclasses import dataclass

from arena.api.settings import ApiSettings
from arena.exceptions import ArenaError
from arena.season.standings import paid_race
from arena.season.state import Season
from neurons.demo.network import RULES, Network
from neurons.local_chain.ledger import Ledger, Neuron
from scoring.types import Json, JsonObject
from scoring.weights import weight_vector


@dataclass(frozen=True, slots=True)
class Payment:
    """The subnet after weights were set. `vector` has a weight for each uid."""

    neurons: tuple[Neuron, ...]
    vector: tuple[int, ...]
    set_by: tuple[str, ...]
    """The wallet names of the validators that have set exactly this."""

    def to_json(self) -> JsonObject:
        """As the demonstration's summary holds it."""
        hotkeys: list[Json] = [n.hotkey for n in self.neurons]
        vector: list[Json] = [*self.vector]
        set_by: list[Json] = [*self.set_by]
        return {"hotkeys": hotkeys, "vector": vector, "set_by": set_by}


def expected(season: Season, hotkeys: list[str]) -> tuple[int, ...]:
    """The vector that every validator has to set, made here from the journal alone."""
    paid = paid_race(season)
    if paid is None:
        raise ArenaError("no race is completed", code="demo.no_race")
    top = ApiSettings().top_share
    return weight_vector(
        paid.finishers, hotkeys, top_share=top, burn_share=1.0 - top, champion=paid.champion
    )


def payment(network: Network, season: Season, validators: dict[str, str]) -> Payment | None:
    """What stands on chain; None until every validator has set weights.

    Raises ArenaError for a validator that has set anything else than what is expected.
    """
    ledger = Ledger(network.home / "chain.sqlite", RULES)
    try:
        neurons, weights = tuple(ledger.neurons()), ledger.weights()
    finally:
        ledger.close()
    uids = {n.hotkey: n.uid for n in neurons}
    vector = expected(season, [n.hotkey for n in neurons])
    wanted = [(uid, weight) for uid, weight in enumerate(vector) if weight]
    for name, hotkey in validators.items():
        found = weights.get(uids[hotkey])
        if found is None:
            return None
        if found != wanted:
            raise ArenaError(
                f"{name} has set {found}, where the standings make {wanted}",
                code="demo.other_weights",
            )
    return Payment(neurons, vector, tuple(validators))
