"""How often, and how soon again, a validator may try an evaluation. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class WorkPolicy:
    """What bounds a validator that fails.

    Only *barren* turns are counted, those that ended without success and without a single
    new record: who gets on with the problems is not stopped by outages, and the number of
    problems bounds such turns.
    """

    tries: int = 3
    """Barren turns after which a validator gets an evaluation no more."""
    first_wait: timedelta = timedelta(minutes=1)
    """How long others come first after a first failure; each further one doubles it."""
    longest_wait: timedelta = timedelta(minutes=30)
    patience: timedelta = timedelta(hours=2)
    """A turn that brought no record for so long is taken back, however often its validator is
    heard of: a heartbeat costs nothing, and would keep an agent from being scored for ever."""
    turn: timedelta = timedelta(hours=12)
    """The longest turn, whatever it brings: one record every now and then would keep a seat
    almost as long. What it brought counts on in its next."""

    def __post_init__(self) -> None:
        if self.tries < 1 or not timedelta(0) <= self.first_wait <= self.longest_wait:
            raise ValueError("a policy needs at least one try, and waits that grow")
        if not timedelta(0) < self.patience <= self.turn:
            raise ValueError("a turn is given time to bring a record, and to end")

    def wait(self, barren: int) -> timedelta:
        """How long a validator waits that has failed, after so many barren turns."""
        # Bounded first: a large power of two is no timedelta.
        factor: int = 2 ** min(max(barren - 1, 0), 16)
        return min(self.first_wait * factor, self.longest_wait)


def in_hand(started: bool, heard_at: datetime, lease: timedelta, now: datetime) -> bool:
    """Whether a validator still works on a run that it holds, where it does not say so itself.

    A run never heard of was lost on the way to it; one not heard of for half its lease was
    lost by it, since it speaks several times in each.
    """
    return started and now < heard_at + lease / 2
