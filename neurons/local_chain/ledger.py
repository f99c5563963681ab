"""What the local chain remembers: one SQLite file, and what its calls change in it.

Blocks are made by the clock: block n ends n times `block_seconds` after the genesis. Epochs
that have passed are settled before anything is read or written, so that no process has to
run for the chain to go on.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from neurons.exceptions import LocalChainError
from neurons.local_chain.emission import Share, split

RAO = 1_000_000_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS chain (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS neurons (
    uid INTEGER PRIMARY KEY, hotkey TEXT NOT NULL UNIQUE, coldkey TEXT NOT NULL,
    registered INTEGER NOT NULL, last_update INTEGER NOT NULL DEFAULT 0,
    stake INTEGER NOT NULL DEFAULT 0, emission INTEGER NOT NULL DEFAULT 0,
    earned INTEGER NOT NULL DEFAULT 0,
    incentive REAL NOT NULL DEFAULT 0, dividends REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS weights (
    uid INTEGER NOT NULL, dest INTEGER NOT NULL, value INTEGER NOT NULL,
    PRIMARY KEY (uid, dest));
CREATE TABLE IF NOT EXISTS commitments (
    hotkey TEXT PRIMARY KEY, block INTEGER NOT NULL, info TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS accounts (
    address TEXT PRIMARY KEY, free INTEGER NOT NULL, nonce INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS extrinsics (
    block INTEGER NOT NULL, place INTEGER NOT NULL, hash TEXT NOT NULL UNIQUE,
    signer TEXT NOT NULL, call TEXT NOT NULL, error TEXT,
    PRIMARY KEY (block, place));
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """The subnet's hyperparameters. Blocks and rao are the chain's units."""

    netuid: int = 15
    block_seconds: float = 12.0
    tempo: int = 360
    weights_rate_limit: int = 100
    max_uids: int = 256
    max_validators: int = 64
    min_stake: int = 1_000 * RAO
    burn: int = RAO // 2
    immunity: int = 5_000
    commit_reveal: bool = False
    emission_per_block: int = RAO


@dataclass(frozen=True, slots=True)
class Neuron:
    """A row of the metagraph."""

    uid: int
    hotkey: str
    coldkey: str
    registered: int
    last_update: int
    stake: int
    emission: int
    earned: int
    incentive: float
    dividends: float
    permit: bool = False


class Ledger:
    """The open file. `now` gives seconds since the epoch; tests hand in their own."""

    def __init__(
        self, path: Path, rules: Rules | None = None, *, now: Callable[[], float] = time.time
    ) -> None:
        """Open the chain in `path`, or begin one there with `rules`.

        Raises LocalChainError when the file is no chain or was begun with other rules.
        """
        self.path = path
        self._now = now
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # One thread at a time, whichever it is: `LocalSubstrate` sees to that.
            self._db = sqlite3.connect(
                path, isolation_level=None, timeout=30.0, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.executescript(_SCHEMA)
            self.rules = self._begin(rules)
        except (OSError, sqlite3.Error) as error:
            raise LocalChainError(f"{path} is no local chain: {error}") from error
        self.genesis = float(self._get("genesis"))

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _begin(self, rules: Rules | None) -> Rules:
        with self._writing():
            found = self._db.execute("SELECT value FROM chain WHERE name = 'rules'").fetchone()
            if found is None:
                begun = rules or Rules()
                self._set("rules", json.dumps(asdict(begun)))
                self._set("genesis", repr(self._now()))
                self._set("settled", "0")
                return begun
        stored = Rules(**json.loads(found[0]))
        if rules is not None and rules != stored:
            raise LocalChainError(
                f"{self.path} was begun with other rules", remedy="name another file, or remove it"
            )
        return stored

    # Blocks -----------------------------------------------------------------

    def block(self) -> int:
        """The number of the last block, 1 for the first."""
        passed = max(0.0, self._now() - self.genesis)
        return 1 + int(passed / self.rules.block_seconds)

    def block_time(self, number: int) -> float:
        """When a block was made, in seconds since the epoch."""
        return self.genesis + (number - 1) * self.rules.block_seconds

    def block_hash(self, number: int) -> str:
        """The hash of a block: fixed by the file's genesis and the number."""
        text = f"{self._get('genesis')}/{number}"
        return "0x" + hashlib.sha256(text.encode()).hexdigest()

    # Reading ----------------------------------------------------------------

    def neurons(self) -> list[Neuron]:
        """All registered neurons by uid, with who may validate now."""
        self._settle()
        rows = self._db.execute("SELECT * FROM neurons ORDER BY uid").fetchall()
        found = [Neuron(*row) for row in rows]
        able = [n for n in found if n.stake >= self.rules.min_stake]
        able.sort(key=lambda n: (-n.stake, n.uid))
        permitted = {n.uid for n in able[: self.rules.max_validators]}
        return [replace(n, permit=n.uid in permitted) for n in found]

    def neuron(self, hotkey: str) -> Neuron | None:
        """The neuron of a hotkey, if it is registered."""
        return next((n for n in self.neurons() if n.hotkey == hotkey), None)

    def weights(self) -> dict[int, list[tuple[int, int]]]:
        """What every uid has set: pairs of uid and u16 value."""
        found: dict[int, list[tuple[int, int]]] = {}
        for uid, dest, value in self._db.execute("SELECT * FROM weights ORDER BY uid, dest"):
            found.setdefault(uid, []).append((dest, value))
        return found

    def commitments(self) -> list[tuple[str, int, object]]:
        """Hotkey, block and the decoded `info` of every commitment."""
        rows = self._db.execute("SELECT hotkey, block, info FROM commitments ORDER BY hotkey")
        return [(hotkey, block, json.loads(info)) for hotkey, block, info in rows]

    def account(self, address: str) -> tuple[int, int]:
        """Free balance in rao, and the next nonce."""
        row = self._db.execute(
            "SELECT free, nonce FROM accounts WHERE address = ?", (address,)
        ).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    # Writing ----------------------------------------------------------------

    @contextmanager
    def extrinsic(self, signer: str, call: str) -> Iterator[int]:
        """Apply a call as `signer` in the block that is yielded: all of it or none.

        What the body raises as LocalChainError is kept as the extrinsic's error.
        """
        self._settle()
        with self._writing():
            number = self.block()
            self._db.execute(
                "INSERT INTO accounts (address, free, nonce) VALUES (?, 0, 1)"
                " ON CONFLICT (address) DO UPDATE SET nonce = nonce + 1",
                (signer,),
            )
            self._db.execute("SAVEPOINT call")
            try:
                yield number
            except LocalChainError as error:
                self._db.execute("ROLLBACK TO call")
                self._note(number, signer, call, error.message)
                raise
            finally:
                self._db.execute("RELEASE call")
            self._note(number, signer, call, None)

    def fund(self, address: str, rao: int) -> None:
        """Give an account free balance, as only a development chain does."""
        with self._writing():
            self._db.execute(
                "INSERT INTO accounts (address, free) VALUES (?, ?)"
                " ON CONFLICT (address) DO UPDATE SET free = free + excluded.free",
                (address, rao),
            )

    def spend(self, address: str, rao: int) -> None:
        """Take free balance. Raises LocalChainError when there is not enough."""
        if self.account(address)[0] < rao:
            raise LocalChainError("NotEnoughBalanceToStake")
        self._db.execute("UPDATE accounts SET free = free - ? WHERE address = ?", (rao, address))

    def register(self, hotkey: str, coldkey: str, block: int) -> int:
        """Give a hotkey a uid; a full subnet loses the neuron that earned least last."""
        if self.neuron(hotkey) is not None:
            raise LocalChainError("HotKeyAlreadyRegisteredInSubNet")
        taken = {n.uid for n in self.neurons()}
        free = next((uid for uid in range(self.rules.max_uids) if uid not in taken), None)
        uid = free if free is not None else self._evict(block)
        self._db.execute(
            "INSERT INTO neurons (uid, hotkey, coldkey, registered) VALUES (?, ?, ?, ?)",
            (uid, hotkey, coldkey, block),
        )
        return uid

    def deregister(self, hotkey: str) -> None:
        """Take a hotkey off the subnet, with the weights that it set."""
        neuron = self.neuron(hotkey)
        if neuron is None:
            raise LocalChainError("HotKeyNotRegisteredInSubNet")
        self._db.execute("DELETE FROM weights WHERE uid = ?", (neuron.uid,))
        self._db.execute("DELETE FROM neurons WHERE uid = ?", (neuron.uid,))

    def add_stake(self, hotkey: str, rao: int) -> None:
        """Raise a hotkey's stake."""
        changed = self._db.execute(
            "UPDATE neurons SET stake = stake + ? WHERE hotkey = ?", (rao, hotkey)
        )
        if not changed.rowcount:
            raise LocalChainError("HotKeyAccountNotExists")

    def set_weights(self, uid: int, pairs: list[tuple[int, int]], block: int) -> None:
        """Replace what a uid has set."""
        self._db.execute("DELETE FROM weights WHERE uid = ?", (uid,))
        rows = [(uid, dest, value) for dest, value in pairs]
        self._db.executemany("INSERT INTO weights VALUES (?, ?, ?)", rows)
        self.touch(uid, block)

    def touch(self, uid: int, block: int) -> None:
        """Note when a uid last set or committed weights."""
        self._db.execute("UPDATE neurons SET last_update = ? WHERE uid = ?", (block, uid))

    def commit(self, hotkey: str, info: object, block: int) -> None:
        """Replace a hotkey's commitment."""
        self._db.execute(
            "INSERT INTO commitments VALUES (?, ?, ?) ON CONFLICT (hotkey)"
            " DO UPDATE SET block = excluded.block, info = excluded.info",
            (hotkey, block, json.dumps(info)),
        )

    # Inside -----------------------------------------------------------------

    def _evict(self, block: int) -> int:
        mortal = [n for n in self.neurons() if block - n.registered >= self.rules.immunity]
        if not mortal:
            raise LocalChainError("NoNeuronIdAvailable")
        last = min(mortal, key=lambda n: (n.emission, n.registered, n.uid))
        self.deregister(last.hotkey)
        return last.uid

    def _settle(self) -> None:
        """Pay out the epochs that have ended since the last look."""
        passed = self.block() // self.rules.tempo
        if passed <= int(self._get("settled")):
            return
        with self._writing():
            done = int(self._get("settled"))
            if passed > done:
                # Weights have not changed in between: every call settles first.
                self._pay(passed - done)
                self._set("settled", str(passed))

    def _pay(self, epochs: int) -> None:
        rows = self._db.execute("SELECT uid, stake FROM neurons").fetchall()
        stakes = {uid: stake for uid, stake in rows if stake >= self.rules.min_stake}
        total = self.rules.emission_per_block * self.rules.tempo
        for uid, share in split(stakes, self.weights(), {uid for uid, _ in rows}).items():
            self._pay_one(uid, share, int(total * share.of_all), epochs)

    def _pay_one(self, uid: int, share: Share, rao: int, epochs: int) -> None:
        self._db.execute(
            "UPDATE neurons SET emission = ?, earned = earned + ?, incentive = ?, dividends = ?"
            " WHERE uid = ?",
            (rao, rao * epochs, share.incentive, share.dividends, uid),
        )

    def _note(self, block: int, signer: str, call: str, error: str | None) -> None:
        place = self._db.execute(
            "SELECT count(*) FROM extrinsics WHERE block = ?", (block,)
        ).fetchone()[0]
        digest = hashlib.sha256(f"{block}/{place}/{signer}/{call}".encode()).hexdigest()
        row = (block, place, "0x" + digest, signer, call, error)
        self._db.execute("INSERT INTO extrinsics VALUES (?, ?, ?, ?, ?, ?)", row)

    def last_extrinsic(self) -> tuple[int, int]:
        """Block and place of the last extrinsic."""
        row = self._db.execute(
            "SELECT block, place FROM extrinsics ORDER BY block DESC, place DESC LIMIT 1"
        ).fetchone()
        return (row[0], row[1]) if row else (0, 0)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except LocalChainError:
            self._db.execute("COMMIT")  # the failed extrinsic itself stands in its block
            raise
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _get(self, name: str) -> str:
        row = self._db.execute("SELECT value FROM chain WHERE name = ?", (name,)).fetchone()
        return str(row[0])

    def _set(self, name: str, value: str) -> None:
        self._db.execute(
            "INSERT INTO chain VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = ?",
            (name, value, value),
        )
