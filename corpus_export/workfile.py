"""What an unfinished export knows so far: one SQLite file beside the directory to be.

Pass one stores here what came of every record, page by page, each page in one transaction
with the place where the source goes on: killed anywhere, the export goes on behind the last
whole page. Pass two ranks and writes from here in the order of ids, so that neither the
order of the source nor the number of workers changes a byte, and nothing but a page has to
be held in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import cast

import orjson

from corpus_export.exceptions import DiskError
from corpus_export.types import Features, Reason, Reject

_TABLES = """
CREATE TABLE state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE found (
    number INTEGER PRIMARY KEY, record_hash TEXT NOT NULL, run_id TEXT, problem_id TEXT,
    bucket TEXT, cluster TEXT, side TEXT, axis TEXT, agent TEXT, validator TEXT,
    sequence INTEGER, coefficient REAL, quality REAL, tool_calls INTEGER, features TEXT,
    scoring_version TEXT, catalog_hash TEXT, later_verdict TEXT, reason TEXT,
    detail TEXT NOT NULL, late INTEGER NOT NULL DEFAULT 0, place INTEGER
);
CREATE INDEX found_hash ON found (record_hash);
CREATE INDEX found_run ON found (run_id);
CREATE INDEX found_candidate ON found (problem_id, record_hash) WHERE reason IS NULL;
CREATE INDEX found_reject ON found (reason) WHERE reason IS NOT NULL;
CREATE TABLE content (number INTEGER PRIMARY KEY, packed BLOB NOT NULL);
"""
_CURSOR = "cursor"


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one record: refused for a reason, or a candidate (`reason` None).

    Everything that could be read of the record is here, however it ended. `later_verdict`
    is the hash of the record that holds the verdict, when it came later; `tool_calls` are
    the trace's.
    """

    record_hash: str
    run_id: str | None = None
    problem_id: str | None = None
    bucket: str | None = None
    cluster: str | None = None
    side: str | None = None
    axis: str | None = None
    agent: str | None = None
    validator: str | None = None
    sequence: int | None = None
    coefficient: float | None = None
    quality: float | None = None
    tool_calls: int | None = None
    features: Features | None = None
    scoring_version: str | None = None
    catalog_hash: str | None = None
    later_verdict: str | None = None
    reason: Reason | None = None
    detail: str = ""


_NAMES = tuple(field.name for field in fields(Found))
_COLUMNS = ", ".join(_NAMES)
_INSERT = f"INSERT INTO found ({_COLUMNS}) VALUES ({', '.join('?' for _ in _NAMES)})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class Unranked:
    """A record that ranking may keep."""

    number: int
    record_hash: str
    bucket: str
    axis: str
    features: Features


class WorkFile:
    """The file, open. Everything raises DiskError when the disk takes no more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _said(path):
            self._connection = sqlite3.connect(path, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            # Consistent whatever dies; a power cut may cost the last pages' work.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if not self._connection.execute("SELECT 1 FROM sqlite_master").fetchone():
                self._connection.executescript(f"BEGIN; {_TABLES} COMMIT;")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def state(self, name: str) -> str | None:
        """A value that was set before."""
        row = self._run("SELECT value FROM state WHERE name = ?", name).fetchone()
        return None if row is None else str(row[0])

    def set_state(self, name: str, value: str) -> None:
        """Set a value."""
        self._run("INSERT OR REPLACE INTO state VALUES (?, ?)", name, value)

    # Pass one ------------------------------------------------------------------------

    @property
    def cursor(self) -> str | None:
        """Where the source goes on; None at its beginning."""
        return self.state(_CURSOR)

    def add(
        self, page: Iterable[tuple[Found, bytes | None]], cursor: str, counts: Mapping[str, int]
    ) -> None:
        """A page's records with the candidates' rows, where the source goes on, and counts
        to be kept with that."""
        with self.transaction():
            for found, packed in page:
                self._add(found, packed)
            self.set_state(_CURSOR, cursor)
            for name, count in counts.items():
                self.set_state(name, str(count))

    def _add(self, found: Found, packed: bytes | None) -> None:
        known = self._run(
            "SELECT record_hash FROM found WHERE record_hash = ? OR run_id = ?",
            found.record_hash,
            found.run_id,
        ).fetchone()
        values = {name: getattr(found, name) for name in _NAMES}
        if known is not None:
            same = known[0] == found.record_hash
            values["reason"] = Reason.DUPLICATE.value
            values["detail"] = "the same record" if same else f"the run has the record {known[0]}"
            packed = None
        features = values["features"]
        values["features"] = None if features is None else orjson.dumps(asdict(features)).decode()
        added = self._run(_INSERT, *values.values())
        if packed is not None:
            self._run("INSERT INTO content VALUES (?, ?)", added.lastrowid, packed)

    # Pass two ------------------------------------------------------------------------

    def begin_selection(self) -> None:
        """Forget what an interrupted second pass decided."""
        self._run("UPDATE found SET reason = NULL, detail = '', late = 0 WHERE late = 1")
        self._run("UPDATE found SET place = NULL WHERE place IS NOT NULL")

    def problems(self) -> Iterator[list[Unranked]]:
        """The candidates of each problem, problems in the order of their ids."""
        problem_id: str | None = ""
        while problem_id is not None:
            row = self._run(
                "SELECT min(problem_id) FROM found WHERE reason IS NULL AND problem_id > ?",
                problem_id,
            ).fetchone()
            problem_id = row[0]
            if problem_id is not None:
                rows = self._run(
                    "SELECT number, record_hash, bucket, axis, features FROM found"
                    " WHERE reason IS NULL AND problem_id = ? ORDER BY record_hash",
                    problem_id,
                ).fetchall()
                yield [
                    Unranked(number, digest, bucket, axis, read_features(text))
                    for number, digest, bucket, axis, text in rows
                ]

    def keep(self, number: int, place: int) -> None:
        """Keep a candidate, at its place among those of its problem and axis."""
        self._run("UPDATE found SET place = ? WHERE number = ?", place, number)

    def refuse(self, number: int, reject: Reject) -> None:
        """Refuse a candidate after all."""
        self._run(
            "UPDATE found SET reason = ?, detail = ?, late = 1, place = NULL WHERE number = ?",
            reject.reason.value,
            reject.detail,
            number,
        )

    def selected(self, side: str, axis: str) -> Iterator[tuple[int, bytes]]:
        """Numbers and packed rows of what was kept, by problem and place."""
        numbers = self._run(
            "SELECT number FROM found WHERE place IS NOT NULL AND side = ? AND axis = ?"
            " ORDER BY problem_id, place, record_hash",
            side,
            axis,
        ).fetchall()
        for (number,) in numbers:
            row = self._run("SELECT packed FROM content WHERE number = ?", number).fetchone()
            yield number, row[0]

    # What it all came to -------------------------------------------------------------

    def rejects(self) -> Iterator[Found]:
        """Every refused record, by run and record."""
        cursor = self._run(
            f"SELECT {_COLUMNS} FROM found WHERE reason IS NOT NULL"  # noqa: S608
            " ORDER BY coalesce(run_id, ''), record_hash, number"
        )
        while rows := cursor.fetchmany(256):
            for row in rows:
                values = dict(zip(_NAMES, row, strict=True))
                text = values["features"]
                values["features"] = None if text is None else read_features(text)
                values["reason"] = Reason(values["reason"])
                yield Found(**values)

    def counted(self, *columns: str) -> list[tuple[object, ...]]:
        """How many records there are of each combination of these columns, in their order."""
        listed = ", ".join(columns)
        return self._run(
            f"SELECT {listed}, count(*) FROM found GROUP BY {listed} ORDER BY {listed}"  # noqa: S608
        ).fetchall()

    def count(self, condition: str) -> int:
        """How many records there are with this."""
        query = f"SELECT count(*) FROM found WHERE {condition}"  # noqa: S608
        return int(self._run(query).fetchone()[0])

    def kept(self) -> list[tuple[str, str, int]]:
        """How many are kept of each side and axis."""
        return self._run(
            "SELECT side, axis, count(*) FROM found WHERE place IS NOT NULL GROUP BY side, axis"
        ).fetchall()

    def sides(self) -> list[tuple[str, str]]:
        """The sides on which each cluster's kept records stand."""
        return self._run(
            "SELECT DISTINCT cluster, side FROM found WHERE place IS NOT NULL ORDER BY cluster"
        ).fetchall()

    def sequences(self) -> list[tuple[str, int, int, int]]:
        """For each validator: its first and last sequence number here, and its records."""
        return self._run(
            "SELECT validator, min(sequence), max(sequence), count(*) FROM found"
            " WHERE validator IS NOT NULL GROUP BY validator ORDER BY validator"
        ).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what is done inside, or nothing."""
        self._run("BEGIN")
        try:
            yield
            self._run("COMMIT")
        except BaseException:
            # A full disk rolls back by itself.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _run(self, statement: str, *values: object) -> sqlite3.Cursor:
        with _said(self._path):
            return self._connection.execute(statement, cast("tuple[str, ...]", values))


def read_features(text: str) -> Features:
    """Read the features of a candidate or a reject."""
    values = orjson.loads(text)
    values["shape"] = tuple(values["shape"])
    return Features(**values)


@contextmanager
def _said(path: Path) -> Iterator[None]:
    """What SQLite says of the disk, as an error of ours."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise DiskError(
            f"{path}: {error}",
            remedy="make room on the disk and start the same command again: it goes on",
        ) from error
