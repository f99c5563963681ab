"""Errors of the corpus room. Codes are stable: commands show them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = [
    "ArenaError",
    "BrokenSourceError",
    "CorpusError",
    "CorpusInvalidError",
    "DiskError",
    "EmptyDayError",
    "ErrorInfo",
    "Fault",
    "OtherExportError",
    "SourceChangedError",
    "TokenizerError",
    "TwoSidesError",
]


class CorpusError(ArenaError):
    """An export that cannot be made as asked."""

    code = "corpus.failed"
    fault = Fault.CALLER


class BrokenSourceError(CorpusError):
    """Records that cannot be read: a damaged file, no race's directory."""

    code = "corpus.broken_source"
    fault = Fault.CALLER


class EmptyDayError(CorpusError):
    """A day on which no run finished."""

    code = "corpus.empty_day"
    fault = Fault.CALLER


class OtherExportError(CorpusError):
    """A directory that holds something else than what is asked for now."""

    code = "corpus.other_inputs"
    fault = Fault.CALLER


class SourceChangedError(CorpusError):
    """Records that changed or grew while they were read."""

    code = "corpus.source_changed"
    fault = Fault.PLATFORM


class TwoSidesError(CorpusError):
    """A cluster whose problems would stand in training and in evaluation."""

    code = "corpus.two_sides"
    fault = Fault.PLATFORM


class DiskError(CorpusError):
    """A disk that took not all that was written."""

    code = "corpus.disk"
    fault = Fault.CALLER


class CorpusInvalidError(CorpusError):
    """An export that does not hold what it says."""

    code = "corpus.invalid"
    fault = Fault.CALLER


class TokenizerError(CorpusError):
    """A tokeniser that cannot be read, or is of another family than the rendering."""

    code = "corpus.bad_tokenizer"
    fault = Fault.CALLER
