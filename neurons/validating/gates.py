"""Why no further run is claimed now. Each reason is told once when it begins and once when it
ends; what is in hand goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from neurons.chain import Subnet
from neurons.validating.spending import Spending

_log = structlog.get_logger(__name__)

RAO_PER_TAO = 1_000_000_000
_GIB = 1 << 30

Gate = Callable[[], str | None]
"""Why it is shut, in words; None while it is open."""


class Gates:
    """All gates of a validator. A run is claimed only while every one is open."""

    def __init__(self, gates: Mapping[str, Gate], told: Callable[[str, bool], None]) -> None:
        """`told` hears of every gate, at every look, whether it is shut."""
        self._gates = dict(gates)
        self._told = told
        self._shut: dict[str, str] = {}

    @property
    def shut(self) -> dict[str, str]:
        """The reasons at the last look, by gate."""
        return dict(self._shut)

    def look(self) -> bool:
        """Whether a run may be claimed."""
        for name, gate in self._gates.items():
            reason = gate()
            self._told(name, reason is not None)
            if reason is not None and name not in self._shut:
                _log.warning("no run is claimed", gate=name, reason=reason)
            if reason is None and name in self._shut:
                _log.info("runs are claimed again", gate=name)
                del self._shut[name]
            if reason is not None:
                self._shut[name] = reason
        return not self._shut


def disk_gate(
    directory: Path,
    floor_gib: float,
    free: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free,
) -> Gate:
    """Shut while the data directory's disk has less room than the floor."""

    def look() -> str | None:
        try:
            left = free(directory)
        except OSError as error:
            return f"{directory} cannot be looked at: {error.strerror}"
        if left >= floor_gib * _GIB:
            return None
        return (
            f"{left / _GIB:.1f} GiB are free for {directory}, less than the floor of"
            f" {floor_gib:g} GiB: make room, or set ARENA_VALIDATOR_DISK_FLOOR_GIB"
        )

    return look


def money_gate(spending: Spending, ceiling_usd: float | None) -> Gate:
    """Shut from when the day's ceiling is reached until the day ends."""

    def look() -> str | None:
        until = spending.exhausted_until()
        if until is None:
            return None
        return (
            f"{spending.today_usd:.2f} USD are spent of {ceiling_usd:.2f} for today; on again at"
            f" {until:%F %R} UTC (ARENA_VALIDATOR_USD_A_DAY)"
        )

    return look


def standing_gate(hotkey: str, minimum_stake: float, subnet: Callable[[], Subnet | None]) -> Gate:
    """Shut while the metagraph, as it was seen last, does not let this hotkey validate."""

    def look() -> str | None:
        seen = subnet()
        return None if seen is None else not_allowed(seen, hotkey, minimum_stake)

    return look


def not_allowed(subnet: Subnet, hotkey: str, minimum_stake: float) -> str | None:
    """Why a hotkey may not validate on a subnet, in one line; None when it may.

    `minimum_stake` is in TAO.
    """
    peer = subnet.peer(hotkey)
    if peer is None:
        return (
            f"hotkey {hotkey} is not registered on subnet {subnet.netuid}: register it"
            f" (btcli subnet register --netuid {subnet.netuid}) or name another wallet"
        )
    stake = peer.stake / RAO_PER_TAO
    if not peer.permit:
        return (
            f"hotkey {hotkey} (uid {peer.uid}) has no validator permit on subnet"
            f" {subnet.netuid}; its stake is {stake:.2f} TAO: permits go to the largest stakes,"
            " at the next epoch"
        )
    if stake < minimum_stake:
        return (
            f"hotkey {hotkey} (uid {peer.uid}) has {stake:.2f} TAO at stake, and"
            f" {minimum_stake:g} are asked for"
        )
    return None
