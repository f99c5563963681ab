"""The nouns of the corpus: trajectories in one form, why one is refused, what ranks it.

Pure. The stages are functions over these, one module each, and run record by record:
`normalise` (record → Trajectory), `gates` (Trajectory → Reject or None), `features`
(Trajectory → Features), `ranking` (Features of one problem → which are kept).
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
    DUPLICATE = "record.duplicate"
    """The same record, or another one of the same run, came before it."""
    NO_PROBLEM = "record.problem_not_at_hand"
    OTHER_CATALOGUE = "record.catalogue_not_at_hand"
    NOT_RELEASED = "release.not_released"
    NEVER_TOUCH = "partition.never_touch"
    NO_MODEL_TURN = "normalise.no_model_turn"
    NO_CALL = "normalise.no_call"
    CUT_OFF = "normalise.cut_off"
    LOST_CONTEXT = "normalise.lost_context"
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
    """What the tool answers: for calls that agent code carries out and shows to nobody."""


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
    """What came back for a call: a text as it is, any other value as compact JSON.

    `mismatch`: what the agent showed the model is not what the wire (or the tool, for
    helpers that run in agent code) answers. `abridged`: it is that answer shortened; a
    mismatch that is not abridged says something else.
    """

    call_id: str
    content: str
    source: ResultSource = field(compare=False)
    mismatch: bool = False
    abridged: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """One completion: thinking, text, calls, and the results the model saw of them.
    `results` has at most one per call, in the order of the calls. `finish_reason` is
    `length` for a completion that was cut, else `tool_calls` or `stop`."""

    reasoning: str
    content: str
    calls: tuple[ToolCall, ...]
    results: tuple[ToolResult, ...]
    finish_reason: str | None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What a run holds besides its trajectory, counted."""

    completions: int = 0
    """Answered, and in no turn: side calls, other conversations, what comes after the end."""
    failed: int = 0
    """Completions that brought nothing: not 200, or without text and call."""
    choices: int = 0
    """Choices (n > 1) that the agent did not go on with."""
    harness_messages: int = 0
    """Messages between turns that code wrote and that show no result."""
    dispatches: int = 0
    """Tool calls on the wire that no turn of the trajectory emitted."""


class Dialect(StrEnum):
    """How the model spoke; `CODE` where code made the calls (axis B)."""

    NATIVE = "native"
    TAGS = "tags"
    CODE = "code"


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One run in the OpenAI tool-calls schema: the system text of the corpus, the query, and
    the turns. `dialect` changes no row. Trajectories are equal when their behaviour is:
    where a result came from and what was left out is not compared."""

    query: str
    turns: tuple[Turn, ...]
    dialect: str
    rewritten: bool = False
    left_out: LeftOut = field(default=LeftOut(), compare=False)


@dataclass(frozen=True, slots=True)
class Features:
    """What ranks a trajectory within its problem, and what statistics are made of.

    `depth` is turns with thinking and a call. `queries` counts distinct searches.
    `verified`: each recommended product was viewed or checked before. `regularity` is
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
