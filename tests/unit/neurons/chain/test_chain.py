"""The SDK's own code over the local chain, through the arena's interface."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arena.exceptions import ChainRefusedError
from neurons.chain import (
    NOT_REGISTERED,
    RATE_LIMITED,
    HotkeyWallet,
    SubtensorChain,
    open_chain,
)
from neurons.exceptions import LocalChainError
from neurons.local_chain.ledger import RAO, Ledger, Rules
from tests.unit.neurons.chain.local import RULES, Clock, network, wallet


async def test_the_metagraph_shows_who_is_registered_with_stake_and_permit(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Validator", stake=500 * RAO)
        await net.register("Miner")
        subnet = await net.chain().subnet()
    assert [(p.uid, p.permit, p.stake) for p in subnet.peers] == [
        (0, True, 500 * RAO),
        (1, False, 0),
    ]
    assert subnet.hotkeys[1] == wallet("Miner").hotkey.ss58_address
    assert subnet.peer("nobody") is None


async def test_weights_reach_the_chain_unchanged(tmp_path: Path) -> None:
    vector = {0: 65535, 1: 21845, 2: 1}
    async with network(tmp_path) as net:
        await net.register("Validator", stake=500 * RAO)
        await net.register("Miner")
        await net.register("Other")
        done = await net.chain("Validator").set_weights(vector)
        assert net.ledger.weights() == {0: sorted(vector.items())}
    assert done.block_hash is not None
    assert done.reveal_round is None


async def test_setting_weights_again_too_soon_is_refused_before_signing(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Validator", stake=500 * RAO)
        chain = net.chain("Validator")
        await chain.set_weights({0: 65535})
        with pytest.raises(ChainRefusedError) as refused:
            await chain.set_weights({0: 65535})
        assert refused.value.code == RATE_LIMITED
        net.clock.blocks(RULES.weights_rate_limit)
        await chain.set_weights({0: 65535})


async def test_a_stranger_cannot_set_weights(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        with pytest.raises(ChainRefusedError) as refused:
            await net.chain("Stranger").set_weights({0: 65535})
        assert refused.value.code == NOT_REGISTERED


async def test_a_miner_without_stake_cannot_set_weights(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Miner")
        with pytest.raises(ChainRefusedError):
            await net.chain("Miner").set_weights({0: 65535})
        assert net.ledger.weights() == {}


async def test_weights_for_a_uid_that_nobody_holds_are_refused(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Validator", stake=500 * RAO)
        with pytest.raises(ChainRefusedError):
            await net.chain("Validator").set_weights({0: 65535, 3: 5})
        assert net.ledger.weights() == {}


async def test_with_commit_reveal_the_sdk_hides_the_weights(tmp_path: Path) -> None:
    async with network(tmp_path, replace(RULES, commit_reveal=True)) as net:
        await net.register("Validator", stake=500 * RAO)
        done = await net.chain("Validator").set_weights({0: 65535})
        assert net.ledger.weights() == {}
    assert done.reveal_round is not None


@pytest.mark.parametrize("data", [b"r", bytes(range(128)), b"\xff\xfe" * 20])
async def test_a_commitment_reads_back_byte_for_byte(tmp_path: Path, data: bytes) -> None:
    async with network(tmp_path) as net:
        await net.register("Owner")
        net.clock.blocks(7)
        done = await net.chain("Owner").commit(data)
        assert done.data == data
        assert done.block == 8
        assert await net.chain().committed(done.address) == done


async def test_a_later_commitment_replaces_an_earlier_one(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Owner")
        chain = net.chain("Owner")
        first = await chain.commit(b"one")
        await chain.commit(b"two")
        found = await chain.committed(first.address)
    assert found is not None
    assert found.data == b"two"


async def test_a_hotkey_alone_commits_and_sets_weights(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Owner", stake=500 * RAO)
        chain = SubtensorChain(net.client, RULES.netuid, HotkeyWallet(wallet("Owner").hotkey))
        assert (await chain.commit(b"root")).data == b"root"
        await chain.set_weights({0: 65535})
        assert net.ledger.weights() == {0: [(0, 65535)]}


async def test_an_unregistered_key_cannot_commit(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        with pytest.raises(ChainRefusedError, match="AccountNotAllowedCommit"):
            await net.chain("Stranger").commit(b"x")


@pytest.mark.parametrize("data", [b"", b"x" * 129])
async def test_a_commitment_that_does_not_fit_is_refused(tmp_path: Path, data: bytes) -> None:
    async with network(tmp_path) as net:
        await net.register("Owner")
        with pytest.raises(ChainRefusedError, match="bytes"):
            await net.chain("Owner").commit(data)


async def test_blocks_follow_the_clock_and_keep_their_hashes(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        chain = net.chain()
        first = await chain.block()
        net.clock.blocks(3)
        later = await chain.block()
        assert (first.ref.number, later.ref.number) == (1, 4)
        assert (later.at - first.at).total_seconds() == 3 * RULES.block_seconds
        assert await chain.block_hash(1) == first.ref.hash
        assert await chain.block_hash(5) is None


async def test_another_subnet_does_not_exist(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        with pytest.raises(ChainRefusedError, match="no subnet 16"):
            await SubtensorChain(net.client, 16).subnet()


async def test_two_processes_see_one_chain(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Owner")
        other = Ledger(tmp_path / "chain.sqlite", now=net.clock)
        try:
            assert [n.hotkey for n in other.neurons()] == [wallet("Owner").hotkey.ss58_address]
            assert other.block_hash(1) == net.ledger.block_hash(1)
        finally:
            other.close()


async def test_emission_goes_by_weights_and_stake_at_the_end_of_an_epoch(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Big", stake=300 * RAO)
        await net.register("Small", stake=100 * RAO)
        await net.register("Good")
        await net.register("Poor")
        await net.chain("Big").set_weights({2: 65535, 3: 21845})
        await net.chain("Small").set_weights({3: 65535})
        net.clock.blocks(RULES.tempo)
        by_uid = {n.uid: n for n in net.ledger.neurons()}
    assert by_uid[2].incentive == pytest.approx(0.75 * 0.75)
    assert by_uid[3].incentive == pytest.approx(0.75 * 0.25 + 0.25)
    assert by_uid[0].dividends == pytest.approx(0.75)
    total = sum(n.emission for n in by_uid.values())
    assert total == pytest.approx(RULES.tempo * RULES.emission_per_block, rel=1e-6)


async def test_a_full_subnet_gives_up_who_earned_least(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        await net.register("Validator", stake=500 * RAO)
        for name in ("One", "Two", "Three"):
            await net.register(name)
        with pytest.raises(Exception, match="NoNeuronIdAvailable"):
            await net.register("Late")
        await net.chain("Validator").set_weights({1: 65535, 3: 65535})
        net.clock.blocks(RULES.immunity + RULES.tempo)
        await net.register("Late")
        subnet = await net.chain().subnet()
    assert subnet.hotkeys[2] == wallet("Late").hotkey.ss58_address


async def test_a_refused_call_changes_nothing_and_stands_in_its_block(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        keys = wallet("Poor")
        with pytest.raises(Exception, match="NotEnoughBalanceToStake"):
            await net.register("Poor", stake=-RULES.burn)
        assert net.ledger.neurons() == []
        assert net.ledger.account(keys.coldkey.ss58_address)[1] == 1


async def test_without_a_key_nothing_is_written(tmp_path: Path) -> None:
    async with network(tmp_path) as net:
        with pytest.raises(ChainRefusedError, match="no key"):
            await net.chain().commit(b"x")


async def test_a_local_chain_is_opened_by_its_path(tmp_path: Path) -> None:
    async with open_chain(f"local-chain:{tmp_path}/dev/chain.sqlite", 7) as chain:
        assert (await chain.subnet()).peers == ()
        assert (await chain.block()).ref.number == 1


def test_a_file_that_is_no_chain_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("not a database, but long enough to be read as one" * 20)
    with pytest.raises(LocalChainError, match="no local chain"):
        Ledger(tmp_path / "x")


def test_a_chain_cannot_be_gone_on_with_under_other_rules(tmp_path: Path) -> None:
    Ledger(tmp_path / "c", Rules(tempo=10), now=Clock()).close()
    with pytest.raises(LocalChainError, match="other rules"):
        Ledger(tmp_path / "c", Rules(tempo=20), now=Clock())
