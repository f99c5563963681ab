"""The nouns of the corpus: trajectories in one form, why one is refused, what ranks it.

Pure. The stages are functions over these, one module each, and run record by record:
`normalise` (record → Trajectory), `gates` (Trajectory → Reject or None), `features`
(Trajectory → Features), `ranking` (Features of one problem → which are kept).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """Where the funnel lets a trajectory go, in order."""

    RECORD = "record"
    """It cannot be read, is open, or belongs to a race that does not count."""
    RELEASE = "release"
    """Not public yet (in a public export)."""
    PARTITION = "partition"
    """Its problem is never to be touched."""
    NORMALISE = "normalise"
    COEFFICIENT = "coefficient"
    FORMAT = "format"
    RANK = "rank"


class Reason(StrEnum):
    """Why a record is not in the corpus. Stable: files of rejects and manifests hold them."""

    UNREADABLE = "record.unreadable"
    UNKNOWN_SCHEMA = "record.unknown_schema"
    OPEN = "record.open"
    BAD_SEAL = "record.bad_seal"
    NO_PROBLEM = "record.problem_not_at_hand"
    OTHER_CATALOGUE = "record.catalogue_not_at_hand"
    NOT_RELEASED = "release.not_released"
    NEVER_TOUCH = "partition.never_touch"
    NO_MODEL_TURN = "normalise.no_model_turn"
    CUT_OFF = "normalise.cut_off"
    UNJUDGED = "coefficient.unjudged"
    LOW_COEFFICIENT = "coefficient.low"
    UNANSWERED_CALL = "format.unanswered_call"
    RECOMMENDATIONS = "format.not_one_recommendation"
    BAD_RECOMMENDATION = "format.recommendation_does_not_resolve"
    TOO_LONG = "format.too_long"
    STOPPED_THINKING = "format.stopped_thinking"
    RANKED_OUT = "rank.ranked_out"

    @property
    def stage(self) -> Stage:
        """The stage that refuses for this reason."""
        return Stage(self.value.partition(".")[0])


@dataclass(frozen=True, slots=True)
class Reject:
    """One refusal. `detail` is for people, bounded, and may hold an agent's text."""

    reason: Reason
    detail: str = ""


class ResultSource(StrEnum):
    """Where an observation comes from (axis.md: the next recorded prompt, else the wire)."""

    PROMPT = "prompt"
    WIRE = "wire"
    RECOMPUTED = "recomputed"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as the model emitted it. `arguments` is JSON text: canonical where it parses to
    an object, else what was emitted. `id` counts through the trajectory, so that both
    dialects give the same."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came back for a call, as JSON text. `mismatch`: what the agent showed the model is
    not what the wire answered."""

    call_id: str
    content: str
    source: ResultSource
    mismatch: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One completion: thinking, text, calls, and the results the model saw of them.
    `results` has at most one per call, in the order of the calls."""

    reasoning: str
    content: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run in the OpenAI tool-calls schema: the system text of the corpus, the query, and
    the turns. `dialect` says how the model spoke: `native` or `tags`; it changes no row."""

    query: str
    turns: tuple[Turn, ...]
    dialect: str
    rewritten: bool = False


@dataclass(frozen=True, slots=True)
class Features:
    """What ranks a trajectory within its problem, and what statistics are made of.

    `depth` is turns with thinking and a call. `queries` counts distinct searches.
    `verified`: a product was viewed or checked before it was recommended. `regularity` is
    the share of turns of the commonest shape. `shape` is the sequence of tools, by which
    two traces are told apart.
    """

    depth: int
    queries: int
    verified: bool
    regularity: float
    shape: tuple[str, ...]
    turns: int
    calls: int
    tokens: int
