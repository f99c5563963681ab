"""The chain through the Bittensor SDK (11): metagraph, weights, commitments, blocks.

One interface for the real network and the local one: the SDK's client runs over its RPC
transport, or over `neurons.local_chain` behind the same `Substrate` protocol. How weights
are set (in plain, or committed under a drand time lock) is left to the SDK.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import bittensor as bt
from bittensor import BittensorError, ChainError, ErrorCode, calls
from bittensor.result import ConnectionNotReady, RpcConnectionError

from arena.chain import COMMITMENT_BYTES, Block, Commitment
from arena.exceptions import ChainRefusedError, ChainUnavailableError
from arena.runs.seal import BlockRef
from neurons.local_chain.ledger import Ledger, Rules
from neurons.local_chain.substrate import LocalSubstrate

LOCAL = "local-chain:"
"""Before the path of a local chain's file, where a network's name is asked for."""
_T = TypeVar("_T")

RATE_LIMITED = "chain.rate_limited"
NOT_REGISTERED = "chain.not_registered"


@dataclass(frozen=True, slots=True)
class Peer:
    """A neuron of the subnet. `stake` is in rao."""

    uid: int
    hotkey: str
    coldkey: str
    permit: bool
    stake: int
    last_update: int


@dataclass(frozen=True, slots=True)
class Subnet:
    """The metagraph at a block, as far as the arena needs it."""

    netuid: int
    block: int
    tempo: int
    peers: tuple[Peer, ...]

    def peer(self, hotkey: str) -> Peer | None:
        """The neuron of a hotkey; None when it is not registered."""
        return next((p for p in self.peers if p.hotkey == hotkey), None)

    @property
    def hotkeys(self) -> tuple[str, ...]:
        """The hotkey of every uid, in order; empty for a uid that nobody holds."""
        held = {p.uid: p.hotkey for p in self.peers}
        return tuple(held.get(uid, "") for uid in range(max(held, default=-1) + 1))


@dataclass(frozen=True, slots=True)
class WeightsSet:
    """Weights that the chain took. `reveal_round` is the drand round that opens them, when
    the subnet hides weights until then."""

    block_hash: str | None
    extrinsic: str | None
    reveal_round: int | None


@dataclass(frozen=True, slots=True)
class HotkeyWallet:
    """A wallet of a hotkey alone, as far as the SDK asks one that signs no coldkey's calls."""

    hotkey: Any

    @property
    def hotkeypub(self) -> Any:
        """The same key: who reads it takes its address."""
        return self.hotkey

    @property
    def coldkey(self) -> Any:
        """The SDK asks that there be one; nothing that is called here uses it."""
        return self.hotkey

    @property
    def coldkeypub(self) -> Any:
        """As `coldkey`."""
        return self.hotkey


class SubtensorChain:
    """A subnet of a chain, seen and signed for by one wallet's hotkey.

    Implements `arena.chain.Chain`. Every call raises ChainUnavailableError when the chain
    does not answer and ChainRefusedError, with the chain's own reason, when it says no.
    """

    def __init__(self, client: bt.Client, netuid: int, wallet: Any | None = None) -> None:
        """`wallet` is the SDK's, or anything with a `hotkey`; without one nothing is written."""
        self._client = client
        self.netuid = netuid
        self._wallet = wallet

    async def block(self) -> Block:
        """The last finalised block, with the chain's own time of it."""
        number = await _answer(self._client.finalized_block())
        found = await self.block_hash(number)
        millis = await _answer(self._client.query(("Timestamp", "Now"), block=number))
        at = datetime.fromtimestamp(int(millis) / 1000, UTC)
        return Block(BlockRef(number, str(found)), at)

    async def block_hash(self, number: int) -> str | None:
        """The hash of a block; None for one that is not there yet."""
        if number > await _answer(self._client.block()):
            return None
        return str(await _answer(self._client._substrate.block_hash(number)))

    async def subnet(self) -> Subnet:
        """The metagraph now. Raises ChainRefusedError when the subnet does not exist."""
        graph = await _answer(self._client.subnets.metagraph(self.netuid, commitments=False))
        if graph is None:
            raise ChainRefusedError(f"there is no subnet {self.netuid} on this chain")
        peers = tuple(
            Peer(
                uid=n.uid,
                hotkey=n.hotkey,
                coldkey=n.coldkey,
                permit=n.validator_permit,
                stake=n.total_stake.rao,
                last_update=n.last_update,
            )
            for n in graph.neurons
            if n.hotkey
        )
        return Subnet(self.netuid, graph.block, graph.tempo, peers)

    async def set_weights(self, vector: Mapping[int, int]) -> WeightsSet:
        """Set a u16 vector, uid → weight, whose largest entry is 65535.

        The SDK checks registration and the rate limit first, and scales the largest entry
        to 65535: such a vector passes through it unchanged. ChainRefusedError has the code
        `chain.rate_limited` when it is too soon, `chain.not_registered` for a stranger.
        """
        intent = bt.SetWeights(self.netuid, weights=dict(vector))
        result = await _answer(self._client.execute(intent, self._signing()))
        _raise_refusal(result)
        return WeightsSet(result.block_hash, result.extrinsic_id, result.data.get("reveal_round"))

    async def commit(self, data: bytes) -> Commitment:
        """Put bytes on chain under the wallet's hotkey (pallet Commitments, raw data)."""
        if not 0 < len(data) <= COMMITMENT_BYTES:
            raise ChainRefusedError(f"a commitment has 1 to {COMMITMENT_BYTES} bytes")
        info = {"fields": [{f"Raw{len(data)}": "0x" + data.hex()}]}
        call = calls.Commitments.set_commitment(netuid=self.netuid, info=info)
        wallet = self._signing()
        _raise_refusal(await _answer(self._client.submit_call(call, wallet, signer="hotkey")))
        address = str(wallet.hotkey.ss58_address)
        found = await self.committed(address)
        if found is None or found.data != data:
            raise ChainUnavailableError("the chain took the commitment and does not show it")
        return found

    async def committed(self, address: str) -> Commitment | None:
        """What a hotkey has committed now."""
        found = (await _answer(self._client.subnets.commitments(self.netuid))).get(address)
        if found is None:
            return None
        return Commitment(address, _raw(found.fields), found.block)

    def _signing(self) -> Any:
        if self._wallet is None:
            raise ChainRefusedError(
                "there is no key to sign with", remedy="name one with --wallet.name"
            )
        return self._wallet


@asynccontextmanager
async def open_chain(
    network: str, netuid: int, wallet: Any | None = None
) -> AsyncIterator[SubtensorChain]:
    """A connected chain, closed at the end.

    `network` is what the SDK takes (`finney`, `test`, `local`, an address), or
    `local-chain:FILE` for a chain of this machine's own, begun there when there is none.
    """
    ledger: Ledger | None = None
    if network.startswith(LOCAL):
        ledger = _ledger(Path(network.removeprefix(LOCAL)), netuid)
        # It answers the part of the protocol that the arena's calls use, and says so else.
        client = bt.Client("local", substrate=cast("Any", LocalSubstrate(ledger)))
    else:
        client = bt.Client(network)
    try:
        # The local chain has no token symbols to read, and nothing else to connect to.
        if ledger is None:
            await _answer(client.connect())
        yield SubtensorChain(client, netuid, wallet)
    finally:
        await client.close()
        if ledger is not None:
            ledger.close()


def _ledger(file: Path, netuid: int) -> Ledger:
    """A local chain, begun there when there is none; one that stands keeps its rules."""
    ledger = Ledger(file, None if file.is_file() else Rules(netuid=netuid))
    if ledger.rules.netuid != netuid:
        ledger.close()
        raise ChainRefusedError(
            f"the local chain in {file} has subnet {ledger.rules.netuid}, not {netuid}",
            remedy=f"--netuid {ledger.rules.netuid}",
        )
    return ledger


def is_local(network: str) -> bool:
    """Whether a stand-in answers for the chain."""
    return network.startswith(LOCAL)


async def _answer(call: Awaitable[_T]) -> _T:
    """What the SDK answers, with its errors turned into ours."""
    try:
        return await call
    except (RpcConnectionError, ConnectionNotReady, OSError, TimeoutError) as error:
        raise ChainUnavailableError(f"the chain does not answer: {error}") from error
    except ChainError as error:
        raise _refusal(error) from error
    except BittensorError as error:
        raise ChainRefusedError(str(error)) from error


def _raise_refusal(result: Any) -> None:
    if not result.success:
        raise _refusal(result.error or ChainError(result.message or "the chain refused the call"))


def _refusal(error: ChainError) -> ChainRefusedError:
    codes = {ErrorCode.RATE_LIMITED: RATE_LIMITED, ErrorCode.NOT_REGISTERED: NOT_REGISTERED}
    return ChainRefusedError(error.message, code=codes.get(error.code), remedy=error.remediation)


def _raw(fields: list[Any]) -> bytes:
    """The bytes of a commitment's raw fields, in order."""
    found = b""
    for field in fields:
        items = field.items() if isinstance(field, dict) else ()
        for variant, value in items:
            if variant.startswith("Raw") and isinstance(value, str):
                found += bytes.fromhex(value.removeprefix("0x"))
    return found
