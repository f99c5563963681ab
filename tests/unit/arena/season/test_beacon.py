"""A beacon's value is the one that was named, and existed for nobody when it was."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena.exceptions import DrawError
from arena.season.beacon import (
    QUICKNET_GENESIS,
    BeaconValue,
    Source,
    chain_ticket,
    check_ticket,
    check_value,
    drand_ticket,
    drand_value,
    quicknet_round,
    quicknet_time,
    signed_by_quicknet,
    standin_ticket,
)
from tests.unit.arena.season.test_verifying import ROUND, SIGNATURE

NOON = datetime(2026, 11, 20, 20, 0, tzinfo=UTC)
DELAY = timedelta(seconds=60)


@given(st.datetimes(datetime(2023, 8, 24), datetime(2100, 1, 1), timezones=st.just(UTC)))
def test_a_round_is_the_first_one_made_then_or_later(moment: datetime) -> None:
    number = quicknet_round(moment)
    assert quicknet_time(number) >= moment
    assert quicknet_time(number - 1) < moment


def test_the_first_round_is_made_at_the_genesis() -> None:
    assert quicknet_round(QUICKNET_GENESIS) == 1
    assert quicknet_time(1) == QUICKNET_GENESIS


def test_a_real_round_is_proven_and_others_are_not() -> None:
    assert signed_by_quicknet(ROUND, SIGNATURE) is True
    assert signed_by_quicknet(ROUND + 1, SIGNATURE) is False
    # Well-formed points that nobody signed with: another encoding, the point at infinity.
    for forged in (f"9{SIGNATURE[1:]}", f"c0{'0' * 94}", "00" * 48):
        assert signed_by_quicknet(ROUND, forged) is False


def test_the_randomness_is_what_the_public_servers_give_for_the_round() -> None:
    value = "fc1873a13f3545aeade8401532ef5519920652eee6b0d2b19ca12643b87b3587"
    assert drand_value(ROUND, SIGNATURE).value == value


@pytest.mark.parametrize(
    "signature", ["", SIGNATURE[:-2], SIGNATURE + "00", SIGNATURE.upper(), "zz" * 48]
)
def test_a_signature_is_48_bytes_and_no_more(signature: str) -> None:
    """Bytes behind it would leave the signature true and change the randomness."""
    with pytest.raises(DrawError) as refused:
        drand_value(ROUND, signature)
    assert refused.value.code == "draw.forged_beacon"


def test_there_is_one_round_for_a_closing_and_it_has_to_be_of_the_future() -> None:
    ticket = drand_ticket(NOON, DELAY)
    check_ticket(ticket, NOON - timedelta(hours=20), NOON, DELAY)
    for other in (replace(ticket, number=ticket.number + 1), replace(ticket, number=1)):
        with pytest.raises(DrawError):
            check_ticket(other, NOON - timedelta(hours=20), NOON, DELAY)
    with pytest.raises(DrawError):
        check_ticket(ticket, NOON + timedelta(minutes=2), NOON, DELAY)


def test_a_block_comes_after_the_closing_however_blocks_come_on_time() -> None:
    now = NOON - timedelta(hours=1)
    ticket = chain_ticket(1000, now, NOON, DELAY)
    assert ticket.number == 1000 + 305  # 3,660 seconds of 12
    check_ticket(ticket, now, NOON, DELAY)
    for bad in (replace(ticket, known=None), replace(ticket, number=1001)):
        with pytest.raises(DrawError):
            check_ticket(bad, now, NOON, DELAY)
    value = BeaconValue(Source.CHAIN, ticket.number, "ab" * 32, NOON + DELAY)
    assert check_value(ticket, value, NOON) is False  # taken, and not proven
    early = replace(value, at=NOON - timedelta(seconds=1))
    with pytest.raises(DrawError) as refused:
        check_value(ticket, early, NOON)
    assert refused.value.code == "draw.early_beacon"


@given(st.sampled_from(Source), st.integers(0, 2**36))
def test_a_value_of_another_source_or_number_is_refused(source: Source, number: int) -> None:
    ticket = standin_ticket(NOON, DELAY)
    value = BeaconValue(source, number, "ab" * 32, NOON + DELAY)
    if (source, number) == (ticket.source, ticket.number):
        return
    with pytest.raises(DrawError) as refused:
        check_value(ticket, value, NOON)
    assert refused.value.code == "draw.other_beacon"
