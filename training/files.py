"""Directories that are whole or not there, and what the disk says in one line."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import orjson
from safetensors import SafetensorError

from scoring.types import JsonObject
from training.exceptions import CheckpointError, DiskFullError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SAID_FULL: Final = tuple(f"(os error {number})" for number in _FULL)
"""How safetensors tells of it: the number of the operating system's error."""


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """What goes wrong while `path` is written. Raises DiskFullError or CheckpointError."""
    try:
        yield
    except SafetensorError as error:
        raise _unwritten(path, str(error), any(s in str(error) for s in _SAID_FULL)) from error
    except OSError as error:
        said = error.strerror or str(error)
        raise _unwritten(path, said, error.errno in _FULL) from error


def _unwritten(path: Path, said: str, full: bool) -> CheckpointError | DiskFullError:
    if full:
        return DiskFullError(
            f"{path}: no room is left on the disk; what was written before is whole",
            remedy="make room and start the same command again: it goes on",
        )
    return CheckpointError(f"{path}: {' '.join(said.split())[:300]}")


def write_directory(target: Path, fill: Callable[[Path], None]) -> None:
    """Make the directory `target` out of what `fill` writes into the one it is given.

    Everything is on the disk before it takes its name; whatever fails leaves no trace. What
    stands at `target` before is replaced. Raises DiskFullError or CheckpointError.
    """
    partial = partial_of(target)
    with disk(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_directory(partial)
        partial.mkdir()
    try:
        with disk(target):
            fill(partial)
            _sync_tree(partial)
            remove_directory(target)
            partial.rename(target)
            sync_directory(target.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def partial_of(path: Path) -> Path:
    """Where what is to become `path` lies until it is whole; a killed process leaves it."""
    return path.with_name(f".{path.name}.partial")


def write_file(path: Path, content: bytes) -> None:
    """A whole file or none, on the disk when this returns. Raises as `write_directory`."""
    partial = partial_of(path)
    try:
        with disk(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with partial.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
            sync_directory(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_json_file(path: Path, value: JsonObject) -> None:
    """A JSON object for people and machines. Raises as `write_directory`."""
    write_file(path, orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")


def read_json_file(path: Path) -> JsonObject:
    """Read what `write_json_file` wrote. Raises CheckpointError."""
    try:
        value = orjson.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise CheckpointError(f"{path} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} is no JSON object")
    return value


def remove_directory(path: Path) -> None:
    """Remove a directory, if it is there."""
    if path.exists():
        shutil.rmtree(path)


def sync_directory(path: Path) -> None:
    """Wait until the disk has a directory's entries."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _sync_tree(directory: Path) -> None:
    for path in directory.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    sync_directory(directory)
