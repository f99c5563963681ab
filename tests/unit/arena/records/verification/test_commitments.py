"""What stands on chain is held against the heads; a chain that is away is said to be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from arena.chain import Commitment
from arena.records.heads import SignedHead, commitment_of, signing_message
from arena.records.verification.findings import Check, Report
from arena.records.verification.heads import PlacedHead, check_commitments
from tests.unit.arena.records.test_heads import HEAD, OPERATOR
from tests.unit.arena.records.test_log import StoodInChain

CONTENT = HEAD.encode()
SIGNED = SignedHead(CONTENT, OPERATOR.sign(signing_message(CONTENT)))
HEADS = [PlacedHead("heads, line 1", SIGNED)]
TRUE = Commitment(OPERATOR.address, commitment_of(HEAD), 7)
OTHER = replace(TRUE, data=commitment_of(replace(HEAD, root=b"\x09" * 32)))
EARLIER = replace(TRUE, data=commitment_of(replace(HEAD, day=HEAD.day.replace(day=2))), block=3)


@pytest.mark.parametrize(
    ("stored", "stands", "found", "passed"),
    [
        ([], None, [], 0),
        ([], TRUE, [], 1),
        ([TRUE], TRUE, [], 1),
        ([TRUE], None, ["commitment.not_on_chain"], 0),
        ([TRUE], EARLIER, ["commitment.not_on_chain"], 0),
        ([], OTHER, ["commitment.other_root"], 0),
        ([OTHER], None, ["commitment.other_root", "commitment.not_on_chain"], 0),
        ([replace(TRUE, data=b"\xff")], TRUE, ["commitment.broken"], 1),
        ([], replace(TRUE, data=b"something else"), ["commitment.broken"], 0),
        ([], EARLIER, [], 0),
    ],
)
async def test_commitments_are_held_against_heads(
    stored: list[Commitment], stands: Commitment | None, found: list[str], passed: int
) -> None:
    chain, report = StoodInChain(), Report()
    chain.stands = stands
    await check_commitments(HEADS, [("a line", one) for one in stored], chain, report)
    assert [finding.code.value for finding in report.findings] == found
    assert report.tally(Check.COMMITMENT).passed == passed


async def test_without_an_answer_nothing_is_called_checked() -> None:
    chain, report = StoodInChain(), Report()
    chain.away = True
    await check_commitments(HEADS, [("a line", TRUE)], chain, report)
    await check_commitments(HEADS, [("a line", TRUE)], None, report)
    assert report.failed == 0
    assert report.tallies[Check.COMMITMENT].passed == 0
    assert set(report.tallies[Check.COMMITMENT].uncheckable) == {
        "the chain does not answer",
        "no chain was given",
    }
