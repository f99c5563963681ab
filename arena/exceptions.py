"""Errors of the arena room. Codes are stable: records hold them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = [
    "AdmissionError",
    "AgentFileError",
    "ArenaError",
    "ArtefactError",
    "BankError",
    "BeaconError",
    "ChainRefusedError",
    "ChainUnavailableError",
    "ClusterError",
    "ConformanceError",
    "DatabaseError",
    "DatabaseUnreachableError",
    "DrawError",
    "ErrorInfo",
    "Fault",
    "JournalAheadError",
    "JournalConflictError",
    "LogError",
    "LogHeadError",
    "OtherInputsError",
    "PartitionError",
    "ProofError",
    "RaceError",
    "RecordConflictError",
    "RewordingError",
    "SealError",
    "SealForkError",
    "SeasonError",
    "SecretError",
    "SettingsError",
    "SpoolError",
]


class SettingsError(ArenaError):
    """A setting that cannot be used."""

    code = "arena.bad_setting"
    fault = Fault.CALLER


class SecretError(ArenaError):
    """A stored secret that does not open: changed, or sealed by a key that is not here."""

    code = "arena.secret_locked"
    fault = Fault.PLATFORM


class DatabaseError(ArenaError):
    """A database that refuses what was asked: wrong address, wrong schema, no such role."""

    code = "database.refused"
    fault = Fault.PLATFORM


class DatabaseUnreachableError(DatabaseError):
    """A database that does not answer now and may answer later."""

    code = "database.unreachable"
    fault = Fault.PLATFORM


class RecordConflictError(DatabaseError):
    """A run that is stored with another record, or judged by another verdict."""

    code = "record.conflict"


class SealForkError(DatabaseError):
    """A seal in the place of another one of its validator's chain, or of a record that is
    sealed already."""

    code = "seal.fork"


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


class LogError(ArenaError):
    """Something that the log of seals refuses: a day out of order, an export in the way."""

    code = "log.refused"
    fault = Fault.CALLER


class LogHeadError(ArenaError):
    """Bytes that are no head of a log."""

    code = "log.bad_head"
    fault = Fault.CALLER


class ProofError(ArenaError):
    """A proof that cannot be made or read."""

    code = "proof.bad"
    fault = Fault.CALLER


class JournalAheadError(ArenaError):
    """An event from a clock that runs ahead."""

    code = "journal.ahead"
    fault = Fault.PLATFORM


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


class BankError(ArenaError):
    """A change to the problem bank that its rules refuse."""

    code = "bank.refused"
    fault = Fault.CALLER


class RewordingError(ArenaError):
    """A rewording that cannot be had: a model that fails, or one that is not there."""

    code = "rewording.failed"
    fault = Fault.VALIDATOR


class ClusterError(ArenaError):
    """Problems that cannot be clustered: one id with two contents."""

    code = "cluster.refused"
    fault = Fault.CALLER


class PartitionError(ArenaError):
    """A partition that cannot be read, or a change to it that its rules refuse."""

    code = "partition.refused"
    fault = Fault.CALLER


class SeasonError(ArenaError):
    """Something that the rules of a season do not allow, or not now."""

    code = "season.refused"
    fault = Fault.CALLER


class BeaconError(ArenaError):
    """A beacon whose value cannot be had now."""

    code = "beacon.unavailable"
    fault = Fault.PLATFORM


class DrawError(ArenaError):
    """A draw that cannot be made, or a record of one that cannot be read."""

    code = "draw.refused"
    fault = Fault.CALLER


class AdmissionError(ArenaError):
    """A submitted file that could not be checked, by no fault of its own."""

    code = "admission.failed"
    fault = Fault.VALIDATOR


class ArtefactError(ArenaError):
    """A model artefact that may not be served: its manifest, a file, or the files together."""

    code = "artefact.refused"
    fault = Fault.AGENT
