"""Weights, from the standings that the arena froze for the epoch and the chain's metagraph.

One deterministic vector for every validator; when there is nothing to say, nothing is said,
and why is. No failure here ever reaches the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import structlog

from arena.client.exceptions import ArenaApiError
from arena.client.validator import Standings, ValidatorClient
from arena.exceptions import ChainRefusedError, ChainUnavailableError
from neurons.chain import RATE_LIMITED, Subnet
from neurons.validating.chain_watch import ChainWatch
from scoring.exceptions import ScoringError
from scoring.weights import BURN_UID, U16_MAX, weight_vector

_log = structlog.get_logger(__name__)


class Tick(StrEnum):
    """What became of one look at the standings."""

    SET = "set"
    UNCHANGED = "unchanged"
    NO_RACE = "no_race"
    RATE_LIMITED = "rate_limited"
    REFUSED = "refused"
    CHAIN_AWAY = "chain_away"
    ARENA_AWAY = "arena_away"
    BAD_STANDINGS = "bad_standings"


REASONS: Final = {
    Tick.UNCHANGED: "this epoch's weights are set already",
    Tick.NO_RACE: "no race is completed yet",
    Tick.RATE_LIMITED: "the chain takes no new weights so soon",
    Tick.REFUSED: "the chain refuses them",
    Tick.CHAIN_AWAY: "the chain does not answer",
    Tick.ARENA_AWAY: "the arena does not answer",
    Tick.BAD_STANDINGS: "no vector can be made of the standings",
}


@dataclass(frozen=True, slots=True)
class _Done:
    epoch: int
    vector: tuple[int, ...]


def vector_for(standings: Standings, subnet: Subnet) -> tuple[int, ...] | None:
    """The weight of every uid; None without a completed race. A validator that is not eligible
    burns. Raises ScoringError for standings that make none."""
    if standings.finishers is None:
        return None
    if not standings.eligible:
        return (U16_MAX, *(0 for _ in subnet.hotkeys[BURN_UID + 1 :]))
    return weight_vector(
        standings.finishers,
        subnet.hotkeys,
        top_share=1.0 - standings.burn_share,
        burn_share=standings.burn_share,
        champion=standings.champion,
    )


class WeightSetter:
    """Sets the weights when they are due."""

    def __init__(self, client: ValidatorClient, chain: ChainWatch) -> None:
        self._client = client
        self._chain = chain
        self._done: _Done | None = None
        self._said: Tick | None = None

    async def tick(self) -> Tick:
        """Look at the standings and set weights if there is reason to. Raises nothing that
        arena or chain may cause."""
        tick, detail = await self._tick()
        if tick is Tick.SET:
            self._said = None
        elif tick is not self._said:  # once, and not every five minutes
            self._said = tick
            level = _log.info if tick in (Tick.UNCHANGED, Tick.NO_RACE) else _log.warning
            level("weights are not set", reason=REASONS[tick], detail=detail)
        return tick

    async def _tick(self) -> tuple[Tick, str]:
        try:
            standings = await self._client.standings()
        except ArenaApiError as error:
            return Tick.ARENA_AWAY, str(error)
        try:
            subnet = await self._chain.look()
            if subnet is None:
                return Tick.CHAIN_AWAY, ""
            vector = vector_for(standings, subnet)
            if vector is None:
                return Tick.NO_RACE, ""
            if self._done == _Done(standings.epoch, vector):
                return Tick.UNCHANGED, f"epoch {standings.epoch}"
            chosen = {uid: weight for uid, weight in enumerate(vector) if weight}
            done = await self._chain.set_weights(chosen)
        except ChainUnavailableError as error:
            return Tick.CHAIN_AWAY, str(error)
        except ChainRefusedError as error:
            limited = error.code == RATE_LIMITED
            return (Tick.RATE_LIMITED if limited else Tick.REFUSED), str(error)
        except ScoringError as error:
            return Tick.BAD_STANDINGS, str(error)
        self._done = _Done(standings.epoch, vector)
        _log.info(
            "weights set",
            epoch=standings.epoch,
            race=standings.race_id,
            block=subnet.block,
            eligible=standings.eligible,
            paid=len(chosen),
            block_hash=done.block_hash,
            reveal_round=done.reveal_round,
        )
        return Tick.SET, ""
