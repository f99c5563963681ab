from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox.provenance.calls import normalise
from sandbox.provenance.emissions import Emission
from sandbox.provenance.ledger import Credit, Ledger

CALLS = [
    normalise("find_product", {"q": "a b c", "shop_id": "1", "service": "COD"}),
    normalise("find_product", {"q": "a b c", "shop_id": "1"}),
    normalise("find_product", {"q": "a b", "shop_id": "1"}),
    normalise("find_product", {"q": "a"}),
    normalise("view_product_information", {"product_ids": "1"}),
    normalise("check_product_match", {"product_id": "1", "requirements": "{}"}),
    normalise("find_products_in_same_shop", {"product_queries": [{"q": "a b"}, {"q": "b"}]}),
    normalise("recommend_product", {"product_ids": "1"}),
]
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["credit", "pay", "expire"]), st.integers(0, 7), st.integers(0, 2)),
    max_size=60,
)


@given(ACTIONS)
def test_no_credit_pays_twice_and_none_after_it_expired(
    actions: list[tuple[str, int, int]],
) -> None:
    ledger = Ledger()
    credited, expired, turn = [0] * 8, [0] * 8, [0, 100, 200]
    open_: dict[int, list[int]] = {}
    paid: set[Credit] = set()
    covered: set[Credit] = set()
    for action, which, completion in actions:
        if action == "credit":
            credited[which] += 1
            open_.setdefault(turn[completion], []).append(which)
            ledger.credit(Emission(turn[completion], 0, CALLS[which]))
        elif action == "expire":
            ledger.expire(turn[completion])
            for was in open_.pop(turn[completion], []):
                expired[was] += 1
            turn[completion] += 1
        else:
            credit = ledger.pay(CALLS[which])
            if credit is not None:
                assert credit not in paid | covered
                assert credit.emission.call == CALLS[which]
                assert credit.emission.seq in open_
                paid.add(credit)
                ledger.answered(credit, CALLS[which], [])
                continue
            by_tool = ledger.cover(CALLS[which])
            if by_tool is not None:
                assert by_tool[0].emission.seq in open_
                if by_tool[0].emission.call.name != "find_product":
                    assert by_tool[0] not in paid
                    covered.add(by_tool[0])
    assert len(paid | covered) <= sum(credited)


def test_a_call_that_cannot_be_compared_neither_pays_nor_is_paid() -> None:
    ledger = Ledger()
    unreadable = normalise("find_product", None)
    ledger.credit(Emission(0, 0, unreadable))
    assert ledger.pay(unreadable) is None
    assert ledger.cover(unreadable) is None


def test_a_check_covers_one_view_and_then_pays_nothing() -> None:
    ledger = Ledger()
    ledger.credit(Emission(0, 0, CALLS[5]))
    assert ledger.cover(CALLS[7]) is None
    assert ledger.cover(CALLS[4]) is not None
    assert ledger.cover(CALLS[4]) is None
    assert ledger.pay(CALLS[5]) is None


def test_same_shop_searches_are_bounded() -> None:
    ledger = Ledger()
    ledger.credit(Emission(0, 0, CALLS[6]))
    taken = 0
    while (by_tool := ledger.cover(CALLS[3])) is not None and taken < 1000:
        by_tool[1].learn(CALLS[3], [])
        taken += 1
    assert taken == 62
