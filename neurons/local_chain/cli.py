"""`arena chain`: a local chain for development, by command: begin, register, show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from bittensor import wallets
from bittensor.keyfiles import KeyfileError, Keypair
from bittensor.wallet import DEFAULT_WALLET_PATH, Wallet
from rich.table import Table

from arena.records.chain_option import SN15
from neurons.chain import LOCAL, open_chain
from neurons.exceptions import LocalChainError
from neurons.local_chain.ledger import RAO, Ledger, Neuron, Rules
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import Json, JsonObject

app = typer.Typer(
    help="A local chain for development. It has none of a real one's security.",
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
)
OWNER = "5C4hrfjw9DjXZTzV3MwzrrAr9P1MJhSrvWGWqi1eSuyUpnhM"
"""Substrate's address of 32 zero bytes: it holds uid 0, and nobody has its key."""
File = Annotated[Path, typer.Argument(metavar="FILE", help="The chain's file.")]


@app.callback()
def _group() -> None:
    """A local chain for development. It has none of a real one's security."""


@app.command()
def begin(
    file: File,
    netuid: Annotated[int, typer.Option(min=0, max=65_535, help="The subnet's number.")] = SN15,
    block_seconds: Annotated[float, typer.Option(min=0.05, help="Time between blocks.")] = 12.0,
    tempo: Annotated[int, typer.Option(min=1, help="Blocks of an epoch.")] = 360,
    weights_rate_limit: Annotated[
        int, typer.Option(min=0, help="Blocks between two weight settings of a validator.")
    ] = 100,
    json: JsonFile = None,
) -> None:
    """Begin a chain with one subnet. A file that holds one with the same rules stays.

    Its uid 0 is the owner's: what burns goes there.

    Example: arena chain begin chain.sqlite --block-seconds 1 --tempo 60
    """
    rules = Rules(
        netuid=netuid,
        block_seconds=block_seconds,
        tempo=tempo,
        weights_rate_limit=weights_rate_limit,
    )
    with _open(file, rules) as ledger:
        console.print(
            f"{plain(str(file))}: subnet {rules.netuid}, block {ledger.block()}; name it as"
            f" --subtensor.network {LOCAL}{plain(str(file))}",
            soft_wrap=True,
        )
    write_json({"file": str(file), "netuid": netuid}, json)


@app.command()
def register(
    file: File,
    hotkey: Annotated[
        str | None, typer.Option(help="An SS58 address; else the wallet's hotkey.")
    ] = None,
    stake: Annotated[
        float, typer.Option(min=0, help="TAO to stake on it; 1000 make a validator.")
    ] = 0.0,
    wallet_name: Annotated[str, typer.Option("--wallet.name", help="A wallet.")] = "default",
    wallet_hotkey: Annotated[str, typer.Option("--wallet.hotkey", help="Its hotkey.")] = "default",
    wallet_path: Annotated[Path, typer.Option("--wallet.path", help="Where wallets lie.")] = Path(
        DEFAULT_WALLET_PATH
    ),
    create: Annotated[
        bool, typer.Option(help="Make the wallet, without a password, where it is missing.")
    ] = False,
    json: JsonFile = None,
) -> None:
    """Register a hotkey, with stake if it is to validate. Again adds the stake that is missing.

    Example: arena chain register chain.sqlite --wallet.name alice --create --stake 1000
    """
    address = (
        _checked(hotkey) if hotkey else _address(wallet_name, wallet_hotkey, wallet_path, create)
    )
    with _open(file) as ledger:
        enter(ledger, address, int(stake * RAO))
        neuron = ledger.neuron(address)
    assert neuron is not None
    permit = "may validate" if neuron.permit else "has no validator permit"
    console.print(f"{plain(address)} has uid {neuron.uid} and {permit}", soft_wrap=True)
    write_json({"hotkey": address, "uid": neuron.uid, "permit": neuron.permit}, json)


@app.command()
def show(file: File, json: JsonFile = None) -> None:
    """The subnet: who is registered, what validators have set, what is committed.

    Example: arena chain show chain.sqlite
    """
    with _open(file) as ledger:
        neurons, weights = ledger.neurons(), ledger.weights()
        block, netuid = ledger.block(), ledger.rules.netuid
    commitments = asyncio.run(_commitments(file, netuid, neurons))
    table = Table(box=None)
    table.add_column("uid")
    table.add_column("hotkey", no_wrap=True, min_width=48)
    for name in ("stake", "permit", "incentive", "dividends"):
        table.add_column(name)
    for n in neurons:
        table.add_row(
            str(n.uid), plain(n.hotkey), f"{n.stake / RAO:g}", "yes" if n.permit else "",
            f"{n.incentive:.4f}", f"{n.dividends:.4f}",
        )  # fmt: skip
    console.print(f"subnet {netuid}, block {block}")
    console.print(table)
    for uid, row in sorted(weights.items()):
        told = ", ".join(f"{dest}: {value}" for dest, value in row)
        console.print(f"uid {uid} has set {told}", soft_wrap=True)
    for hotkey, text in commitments.items():
        console.print(f"{plain(hotkey)} has committed {plain(text)}", soft_wrap=True)
    write_json(_to_json(block, neurons, weights, commitments), json)


def enter(ledger: Ledger, hotkey: str, stake: int) -> None:
    """Register a hotkey that is not yet, and raise its stake to `stake` rao.

    The chain pays for it: nobody's balance is asked.
    """
    known = ledger.neuron(hotkey)
    if known is None:
        ledger.fund(hotkey, ledger.rules.burn)
        with ledger.extrinsic(hotkey, "register") as block:
            ledger.spend(hotkey, ledger.rules.burn)
            ledger.register(hotkey, hotkey, block)
    missing = stake - (known.stake if known else 0)
    if missing > 0:
        with ledger.extrinsic(hotkey, "add_stake"):
            ledger.add_stake(hotkey, missing)


def _address(name: str, hotkey: str, path: Path, create: bool) -> str:
    try:
        wallet = Wallet(name, hotkey, str(path.expanduser()))
        missing = not Path(wallet.hotkey_file.path).exists()
        if missing and create:
            wallet = wallets.create(
                name, hotkey, str(path.expanduser()), use_password=False, on_mnemonic=_unsaid
            )
        elif missing:
            raise LocalChainError(
                f"there is no hotkey {hotkey} of wallet {name} in {path}",
                code="local_chain.no_wallet",
                remedy="--create makes one for development",
            )
        return str(wallet.hotkeypub.ss58_address)
    except (KeyfileError, OSError, ValueError) as error:
        raise LocalChainError(f"wallet {name}: {error}", code="local_chain.bad_wallet") from None


def _checked(hotkey: str) -> str:
    try:
        return str(Keypair(ss58_address=hotkey).ss58_address)
    except ValueError:
        raise LocalChainError(
            f"{hotkey[:60]!r} is no SS58 address", code="local_chain.bad_hotkey"
        ) from None


def _unsaid(kind: str, mnemonic: str) -> None:
    """A key for development is thrown away with its chain: its words are not shown."""


@contextmanager
def _open(file: Path, rules: Rules | None = None) -> Iterator[Ledger]:
    if rules is None and not file.is_file():
        raise LocalChainError(
            f"there is no chain in {file}",
            code="local_chain.missing",
            remedy=f"arena chain begin {file}",
        )
    ledger = Ledger(file, rules)
    try:
        if not ledger.neurons():
            enter(ledger, OWNER, 0)
        yield ledger
    finally:
        ledger.close()


async def _commitments(file: Path, netuid: int, neurons: list[Neuron]) -> dict[str, str]:
    async with open_chain(f"{LOCAL}{file}", netuid) as chain:
        found = {n.hotkey: await chain.committed(n.hotkey) for n in neurons}
    return {hotkey: c.data.hex() for hotkey, c in found.items() if c is not None}


def _to_json(
    block: int,
    neurons: list[Neuron],
    weights: dict[int, list[tuple[int, int]]],
    commitments: dict[str, str],
) -> JsonObject:
    rows: list[Json] = [
        {"uid": n.uid, "hotkey": n.hotkey, "stake": n.stake, "permit": n.permit,
         "incentive": n.incentive, "dividends": n.dividends}
        for n in neurons
    ]  # fmt: skip
    sets: JsonObject = {str(u): [[d, v] for d, v in row] for u, row in sorted(weights.items())}
    return {"block": block, "neurons": rows, "weights": sets, "commitments": dict(commitments)}
