"""Errors of the arena room. Codes are stable: records hold them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = [
    "AgentFileError",
    "ArenaError",
    "ChainRefusedError",
    "ChainUnavailableError",
    "ClusterError",
    "ConformanceError",
    "DatabaseError",
    "DatabaseUnreachableError",
    "ErrorInfo",
    "Fault",
    "JournalConflictError",
    "OtherInputsError",
    "PartitionError",
    "RaceError",
    "SealError",
    "SettingsError",
    "SpoolError",
]


class SettingsError(ArenaError):
    """A setting that cannot be used."""

    code = "arena.bad_setting"
    fault = Fault.CALLER


class DatabaseError(ArenaError):
    """A database that refuses what was asked: wrong address, wrong schema, no such role."""

    code = "database.refused"
    fault = Fault.PLATFORM


class DatabaseUnreachableError(DatabaseError):
    """A database that does not answer now and may answer later."""

    code = "database.unreachable"
    fault = Fault.PLATFORM


class SpoolError(ArenaError):
    """Results on disk that cannot be read or written."""

    code = "spool.failed"
    fault = Fault.VALIDATOR


class RaceError(ArenaError):
    """A race that cannot start, or did not complete."""

    code = "race.failed"
    fault = Fault.CALLER


class OtherInputsError(RaceError):
    """A race directory that was begun with other agents, problems or settings."""

    code = "race.other_inputs"
    fault = Fault.CALLER


class AgentFileError(ArenaError):
    """An agent's file that cannot be read."""

    code = "arena.bad_agent_file"
    fault = Fault.CALLER


class ConformanceError(ArenaError):
    """Vector files that cannot be judged: broken, of no known kind, or wanting a catalogue."""

    code = "conformance.bad_vectors"
    fault = Fault.CALLER


class SealError(ArenaError):
    """Bytes that are no seal, or a seal that cannot be made."""

    code = "seal.broken"
    fault = Fault.VALIDATOR


class JournalConflictError(ArenaError):
    """A journal that has gone on since it was read."""

    code = "journal.conflict"
    fault = Fault.PLATFORM


class ChainUnavailableError(ArenaError):
    """A chain that does not answer now and may answer later."""

    code = "chain.unavailable"
    fault = Fault.PLATFORM


class ChainRefusedError(ArenaError):
    """A chain that answers no: not registered, too soon, not enough balance."""

    code = "chain.refused"
    fault = Fault.CALLER


class ClusterError(ArenaError):
    """Problems that cannot be clustered: one id with two contents."""

    code = "cluster.refused"
    fault = Fault.CALLER


class PartitionError(ArenaError):
    """A partition that cannot be read, or a change to it that its rules refuse."""

    code = "partition.refused"
    fault = Fault.CALLER
