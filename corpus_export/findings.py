"""What `arena corpus verify` can find. Codes are stable."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from scoring.types import JsonObject


class Code(StrEnum):
    """One kind of finding."""

    MANIFEST = "manifest.broken"
    """No manifest, or one that is broken, not canonical or of another schema."""
    MISSING = "file.missing"
    UNKNOWN = "file.unknown"
    """A file that the manifest does not name."""
    SIZE = "file.size"
    HASH = "file.hash"
    UNREADABLE = "file.unreadable"
    COLUMNS = "file.columns"
    """A Parquet file with other columns or types."""
    FORMATS = "file.formats_differ"
    """Parquet and JSON Lines do not hold the same rows."""
    CARD = "card.differs"
    """The card or a picture is not what manifest and rows give."""
    FUNNEL = "counts.funnel"
    ROWS = "counts.rows"
    SEQUENCES = "counts.sequences"
    PARTITION = "partition.broken"
    TWO_SIDES = "partition.two_sides"
    """A cluster, a problem or a record in training and in evaluation."""
    SIDE = "partition.side"
    """A row whose problem stands elsewhere, or nowhere, in the partition."""
    TWICE = "row.twice"
    """A record that is in two rows, or in a row and among the rejects."""
    PLACE = "row.place"
    """A row whose split or axis is not its file's."""
    MESSAGES = "row.messages"
    """Messages that are no trajectory."""
    UNANSWERED = "row.unanswered_call"
    RECOMMENDATIONS = "row.not_one_recommendation"
    RECOMMENDATION = "row.recommendation"
    TOO_LONG = "row.too_long"
    STOPPED = "row.stopped_thinking"
    TOKENS = "row.tokens"
    """Another number of tokens than the row says."""
    FEATURES = "row.features"
    COEFFICIENT = "row.coefficient"
    """Below the export's least, or not what the quality gives."""
    SCORE = "row.final_score"
    KEPT = "row.too_many_kept"
    RELEASE = "row.not_released"
    """A row of a public export that is not released, or one that does not say so."""
    REJECT = "reject.broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be. `where` is a file, or a row in it."""

    code: Code
    where: str
    message: str

    def to_json(self) -> JsonObject:
        """As `--json` writes it."""
        return {"code": self.code.value, "where": self.where, "message": self.message}
