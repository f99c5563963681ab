"""The SDK's `Substrate` protocol over the local chain's ledger.

Only what the SDK asks for registration, stake, weights, commitments and the metagraph is
answered; everything else raises, naming what was asked, so that nothing seems to work
that does not. Values have the shapes of the real chain's decoded storage.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from bittensor.balance import Balance
from bittensor.result import ChainError, ExtrinsicResult

from neurons.exceptions import LocalChainError
from neurons.local_chain.ledger import Ledger, Neuron

T = TypeVar("T")

U16 = 65_535
_EMPTY_AXON = {"ip": 0, "port": 0, "ip_type": 4, "protocol": 0, "version": 0, "block": 0}


class LocalSubstrate:
    """One process's view of a local chain. `Client(…, substrate=LocalSubstrate(ledger))`."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.token_symbols: dict[int, str] = {}
        self._lock = threading.Lock()

    def balance(self, rao: int, netuid: int = 0) -> Balance:
        """A balance of so many rao."""
        return Balance(int(rao), netuid, None)

    async def connect(self) -> None:
        """Nothing to open: the ledger is open."""

    async def close(self) -> None:
        """Nothing to close: who opened the ledger closes it."""

    # Blocks -----------------------------------------------------------------

    async def block_hash(self, block: int | None = None) -> str:
        """The hash of a block, of the last by default."""
        return self.ledger.block_hash(self.ledger.block() if block is None else block)

    async def block_number(self) -> int:
        """The last block."""
        return self.ledger.block()

    async def finalized_block_number(self) -> int:
        """The last block: every one is final here."""
        return self.ledger.block()

    async def block_time(self) -> float:
        """Seconds a block."""
        return self.ledger.rules.block_seconds

    async def spec_version(self) -> int:
        """No runtime stands behind it."""
        return 0

    # Reading ----------------------------------------------------------------

    async def query(
        self,
        module: str,
        storage_function: str,
        params: list[Any] | None = None,
        block_hash: str | None = None,
    ) -> Any:
        """One storage item. The state is always the present one: there is no history."""
        read = _ITEMS.get((module, storage_function))
        if read is None:
            raise ChainError(f"the local chain has no {module}.{storage_function}")
        return await self._apart(lambda: read(self.ledger, params or []))

    async def query_batch(
        self,
        module: str,
        storage_function: str,
        param_sets: list[list[Any]],
        block_hash: str | None = None,
    ) -> list[Any]:
        """One storage item for many keys."""
        return [await self.query(module, storage_function, params) for params in param_sets]

    async def query_map(
        self,
        module: str,
        storage_function: str,
        params: list[Any] | None = None,
        block_hash: str | None = None,
    ) -> list[tuple[Any, Any]]:
        """A whole storage map; empty for maps that the local chain does not keep."""
        read = _MAPS.get((module, storage_function))
        return [] if read is None else await self._apart(lambda: read(self.ledger))

    async def map_has_entries(
        self,
        module: str,
        storage_function: str,
        params: list[Any],
        block_hash: str | None = None,
    ) -> bool:
        """Whether a storage map has anything."""
        return bool(await self.query_map(module, storage_function, params))

    async def runtime_call(
        self, api: str, method: str, params: list[Any], block_hash: str | None = None
    ) -> Any:
        """The metagraph, and nothing else."""
        if (api, method) != ("SubnetInfoRuntimeApi", "get_metagraph"):
            raise ChainError(f"the local chain has no {api}.{method}")
        if params[0] != self.ledger.rules.netuid:
            return None
        return await self._apart(lambda: _metagraph(self.ledger))

    async def constant(self, module: str, name: str) -> Any:
        """No pallet has constants here."""
        raise ChainError(f"the local chain has no constant {module}.{name}")

    async def events(self, block_hash: str | None = None) -> list[dict[str, Any]]:
        """No events are kept."""
        return []

    # Writing ----------------------------------------------------------------

    async def compose(self, call: Any) -> Any:
        """A call as it is: there is nothing to encode."""
        return call

    async def estimate_fee(self, call: Any, keypair: Any) -> Balance:
        """Nothing costs a fee."""
        return self.balance(0)

    async def estimate_weight(self, call: Any, keypair: Any) -> dict[str, int]:
        """Nothing weighs anything."""
        return {"ref_time": 0, "proof_size": 0}

    async def account_next_index(self, address: str) -> int:
        """How many calls an account has made."""
        return self.ledger.account(address)[1]

    async def submit(
        self,
        call: Any,
        keypair: Any,
        *,
        nonce: int | None = None,
        period: int | None = None,
        wait_for_inclusion: bool = True,
        wait_for_finalization: bool = True,
    ) -> ExtrinsicResult:
        """Apply a call at once. A refusal is the result's error, as on the real chain."""
        signer = str(keypair.ss58_address)
        return await self._apart(lambda: self._submit(call, signer))

    async def _apart(self, work: Callable[[], T]) -> T:
        """Work on the file in a thread: another process may hold it for a moment."""

        def locked() -> T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)

    def _submit(self, call: Any, signer: str) -> ExtrinsicResult:
        module, function, params = call
        apply = _CALLS.get((module, function))
        if apply is None:
            raise ChainError(f"the local chain has no call {module}.{function}")
        told = json.dumps([module, function, params], default=_hex, sort_keys=True)
        try:
            with self.ledger.extrinsic(signer, told) as block:
                apply(self.ledger, signer, params, block)
        except LocalChainError as error:
            refused = ChainError(error.message, name=error.message)
            return ExtrinsicResult(success=False, message=error.message, error=refused)
        number, place = self.ledger.last_extrinsic()
        return ExtrinsicResult(
            success=True,
            message="Success",
            block_hash=self.ledger.block_hash(number),
            extrinsic_id=f"{number}-{place}",
        )


def _hex(value: object) -> str:
    return bytes(value).hex() if isinstance(value, bytes | bytearray) else str(value)


# Storage ------------------------------------------------------------------------


def _uid(ledger: Ledger, params: list[Any]) -> int | None:
    neuron = ledger.neuron(str(params[1]))
    return None if neuron is None or params[0] != ledger.rules.netuid else neuron.uid


def _column(of: Callable[[Neuron], Any]) -> Callable[[Ledger, list[Any]], list[Any]]:
    def read(ledger: Ledger, params: list[Any]) -> list[Any]:
        return _dense(ledger, of)

    return read


def _dense(ledger: Ledger, of: Callable[[Neuron], Any], empty: Any = 0) -> list[Any]:
    """One value a uid, in order; a uid that nobody holds has `empty`."""
    neurons = ledger.neurons()
    column = [empty] * (neurons[-1].uid + 1 if neurons else 0)
    for neuron in neurons:
        column[neuron.uid] = of(neuron)
    return column


_Item = Callable[[Ledger, list[Any]], Any]
_ITEMS: dict[tuple[str, str], _Item] = {
    ("SubtensorModule", "Uids"): _uid,
    ("SubtensorModule", "LastUpdate"): _column(lambda n: n.last_update),
    ("SubtensorModule", "ValidatorPermit"): _column(lambda n: n.permit),
    ("SubtensorModule", "CommitRevealWeightsEnabled"): lambda c, _: c.rules.commit_reveal,
    ("SubtensorModule", "WeightsSetRateLimit"): lambda c, _: c.rules.weights_rate_limit,
    ("SubtensorModule", "MinAllowedWeights"): lambda c, _: 1,
    ("SubtensorModule", "MaxWeightsLimit"): lambda c, _: U16,
    ("SubtensorModule", "SubnetEpochConsensus"): lambda c, _: "Yuma",
    ("SubtensorModule", "Tempo"): lambda c, _: c.rules.tempo,
    ("SubtensorModule", "RevealPeriodEpochs"): lambda c, _: 1,
    ("SubtensorModule", "LastEpochBlock"): lambda c, _: c.block() // c.rules.tempo * c.rules.tempo,
    ("SubtensorModule", "PendingEpochAt"): lambda c, _: 0,
    ("SubtensorModule", "SubnetEpochIndex"): lambda c, _: c.block() // c.rules.tempo,
    ("SubtensorModule", "BlocksSinceLastStep"): lambda c, _: c.block() % c.rules.tempo,
    ("SubtensorModule", "Burn"): lambda c, _: c.rules.burn,
    ("SubtensorModule", "NetworksAdded"): lambda c, p: p[0] == c.rules.netuid,
    ("Timestamp", "Now"): lambda c, _: int(c.block_time(c.block()) * 1000),
    ("System", "Account"): lambda c, p: {
        "nonce": c.account(str(p[0]))[1],
        "data": {"free": c.account(str(p[0]))[0], "reserved": 0, "frozen": 0},
    },
}


def _commitment_map(ledger: Ledger) -> list[tuple[Any, Any]]:
    return [
        (hotkey, {"deposit": 0, "block": block, "info": info})
        for hotkey, block, info in ledger.commitments()
    ]


_MAPS: dict[tuple[str, str], Callable[[Ledger], list[tuple[Any, Any]]]] = {
    ("Commitments", "CommitmentOf"): _commitment_map,
    ("SubtensorModule", "Uids"): lambda c: [(n.hotkey, n.uid) for n in c.neurons()],
    ("SubtensorModule", "Weights"): lambda c: sorted(c.weights().items()),
}


def _metagraph(ledger: Ledger) -> dict[str, Any]:
    rules, neurons, block = ledger.rules, ledger.neurons(), ledger.block()
    if any(n.uid != place for place, n in enumerate(neurons)):
        neurons = _without_gaps(neurons)

    def column(of: Callable[[Neuron], Any]) -> list[Any]:
        return [of(n) for n in neurons]

    return {
        "netuid": rules.netuid,
        "name": list(b"local"),
        "symbol": list(b"L"),
        "block": block,
        "tempo": rules.tempo,
        "last_step": block // rules.tempo * rules.tempo,
        "blocks_since_last_step": block % rules.tempo,
        "owner_hotkey": neurons[0].hotkey if neurons else "",
        "owner_coldkey": neurons[0].coldkey if neurons else "",
        "network_registered_at": 0,
        "num_uids": len(neurons),
        "max_uids": rules.max_uids,
        "tao_in": 0,
        "alpha_in": 0,
        "moving_price": {"bits": 0},
        "identity": None,
        "hotkeys": column(lambda n: n.hotkey),
        "coldkeys": column(lambda n: n.coldkey),
        "identities": [None] * len(neurons),
        "axons": [_EMPTY_AXON] * len(neurons),
        "active": column(lambda n: bool(n.hotkey)),
        "validator_permit": column(lambda n: n.permit),
        "last_update": column(lambda n: n.last_update),
        "block_at_registration": column(lambda n: n.registered),
        "rank": column(lambda n: round(n.incentive * U16)),
        "trust": [0] * len(neurons),
        "consensus": column(lambda n: round(n.incentive * U16)),
        "incentives": column(lambda n: round(n.incentive * U16)),
        "dividends": column(lambda n: round(n.dividends * U16)),
        "pruning_score": column(lambda n: round(n.incentive * U16)),
        "emission": column(lambda n: n.emission),
        "alpha_stake": column(lambda n: n.stake),
        "tao_stake": [0] * len(neurons),
        "total_stake": column(lambda n: n.stake),
    }


def _without_gaps(neurons: list[Neuron]) -> list[Neuron]:
    """Every uid up to the highest: one that was given up is nobody's."""
    by_uid = {n.uid: n for n in neurons}
    nobody = [Neuron(uid, "", "", 0, 0, 0, 0, 0, 0.0, 0.0) for uid in range(max(by_uid) + 1)]
    return [by_uid.get(n.uid, n) for n in nobody]


# Calls --------------------------------------------------------------------------


def _register(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> None:
    _own(ledger, params)
    ledger.spend(signer, ledger.rules.burn)
    ledger.register(str(params["hotkey"]), signer, block)


def _add_stake(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> None:
    _own(ledger, params)
    ledger.spend(signer, int(params["amount_staked"]))
    ledger.add_stake(str(params["hotkey"]), int(params["amount_staked"]))


def _set_weights(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> None:
    neuron = _validator(ledger, signer, params, block)
    pairs = list(zip(params["dests"], params["weights"], strict=True))
    uids = {n.uid for n in ledger.neurons()}
    if len({dest for dest, _ in pairs}) != len(pairs):
        raise LocalChainError("DuplicateUids")
    if any(dest not in uids for dest, _ in pairs):
        raise LocalChainError("UidVecContainInvalidOne")
    if any(not 0 <= value <= U16 for _, value in pairs):
        raise LocalChainError("WeightVecNotEqualSize")
    ledger.set_weights(neuron.uid, pairs, block)


def _commit_weights(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> None:
    # Kept as an extrinsic; what is locked until a drand round cannot be opened offline.
    ledger.touch(_validator(ledger, signer, params, block).uid, block)


def _validator(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> Neuron:
    _own(ledger, params)
    neuron = ledger.neuron(signer)
    if neuron is None:
        raise LocalChainError("HotKeyNotRegisteredInSubNet")
    if neuron.stake < ledger.rules.min_stake:
        raise LocalChainError("NotEnoughStakeToSetWeights")
    if not neuron.permit:
        raise LocalChainError("NeuronNoValidatorPermit")
    if neuron.last_update and block - neuron.last_update < ledger.rules.weights_rate_limit:
        raise LocalChainError("SettingWeightsTooFast")
    return neuron


def _commit(ledger: Ledger, signer: str, params: dict[str, Any], block: int) -> None:
    _own(ledger, params)
    if ledger.neuron(signer) is None:
        raise LocalChainError("AccountNotAllowedCommit")
    ledger.commit(signer, params["info"], block)


def _own(ledger: Ledger, params: dict[str, Any]) -> None:
    if params["netuid"] != ledger.rules.netuid:
        raise LocalChainError("SubnetNotExists")


_Call = Callable[[Ledger, str, dict[str, Any], int], None]
_CALLS: dict[tuple[str, str], _Call] = {
    ("SubtensorModule", "burned_register"): _register,
    ("SubtensorModule", "add_stake"): _add_stake,
    ("SubtensorModule", "set_mechanism_weights"): _set_weights,
    ("SubtensorModule", "commit_timelocked_mechanism_weights"): _commit_weights,
    ("Commitments", "set_commitment"): _commit,
}
