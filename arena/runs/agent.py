"""An agent's file, as the validator holds it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from arena.exceptions import AgentFileError
from arena.runs.record import AgentRef

MAX_SOURCE_BYTES = 10 << 20
"""No agent's file is larger."""
_MAX_LABEL = 100


@dataclass(frozen=True, slots=True)
class AgentFile:
    """Who an agent is, and its file's bytes. Nothing here looks into them."""

    ref: AgentRef
    source: bytes


def read_agents(names: Sequence[str], shipped: Mapping[str, Path]) -> tuple[AgentFile, ...]:
    """The agents a person named: a shipped name, or a file.

    Labels are made distinct: `react`, `react-2`, ... Raises AgentFileError for a file
    that is not there or is too large.
    """
    agents: list[AgentFile] = []
    labels: set[str] = set()
    for name in names:
        path = shipped.get(name) or Path(name)
        source = _source(name, path, shipped)
        label = _distinct(name if name in shipped else path.stem, labels)
        labels.add(label)
        digest = hashlib.sha256(source).hexdigest()
        agents.append(AgentFile(AgentRef(label, _printable(path.name), digest), source))
    return tuple(agents)


def _source(name: str, path: Path, shipped: Mapping[str, Path]) -> bytes:
    remedy = f"give a Python file, or one of {', '.join(shipped)}" if shipped else None
    try:
        with path.open("rb") as file:
            source = file.read(MAX_SOURCE_BYTES + 1)
    except OSError as error:
        raise AgentFileError(f"agent {name}: {error.strerror}", remedy=remedy) from error
    if len(source) > MAX_SOURCE_BYTES:
        raise AgentFileError(f"agent {name}: larger than {MAX_SOURCE_BYTES >> 20} MiB")
    return source


def _distinct(name: str, taken: set[str]) -> str:
    base = _printable(name)[:_MAX_LABEL] or "agent"
    label, number = base, 2
    while label in taken:
        label, number = f"{base}-{number}", number + 1
    return label


def _printable(name: str) -> str:
    """A file name may hold anything; a label stands in tables, records and rows."""
    return "".join(c if c.isprintable() else "_" for c in name)
