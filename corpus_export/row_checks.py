"""Proofs on one row: that it is a trajectory which passes every gate, and says so rightly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import cast

from corpus_export.features import features
from corpus_export.findings import Code
from corpus_export.gates import (
    not_one_recommendation,
    stopped_thinking,
    too_long,
    unanswered_call,
    unresolved_recommendation,
)
from corpus_export.normalise import messages_of
from corpus_export.rows import NOT_PUBLIC
from corpus_export.tokens import TokenCounter
from corpus_export.types import (
    Features,
    Reason,
    Reject,
    ResultSource,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
)
from sandbox.catalog import Catalog
from scoring.coefficient import coefficient
from scoring.types import JsonObject

_CODES = {
    Reason.UNANSWERED_CALL: Code.UNANSWERED,
    Reason.RECOMMENDATIONS: Code.RECOMMENDATIONS,
    Reason.BAD_RECOMMENDATION: Code.RECOMMENDATION,
    Reason.TOO_LONG: Code.TOO_LONG,
    Reason.STOPPED_THINKING: Code.STOPPED,
}
Fault = tuple[Code, str]


def trajectory_of(messages: Sequence[JsonObject], dialect: str = "native") -> Trajectory:
    """A row's messages as a trajectory: what `messages_of` made them of, but for what it
    leaves out. Raises ValueError, LookupError or TypeError for messages that are none."""
    if [message["role"] for message in messages[:2]] != ["system", "user"]:
        raise ValueError("it does not begin with a system text and a query")
    turns: list[Turn] = []
    for message in messages[2:]:
        if message["role"] == "assistant":
            turns.append(_turn(message))
        elif message["role"] == "tool" and turns:
            turns[-1] = _answered(turns[-1], message)
        else:
            raise ValueError(f"a message of {str(message['role'])[:40]!r} in its middle")
    made = Trajectory(cast("str", messages[1]["content"]), tuple(turns), dialect)
    # The system text is the export's; all else has to come out as it went in.
    if messages_of(made)[1:] != list(messages)[1:]:
        raise ValueError("calls and results do not belong together")
    return made


def _turn(message: JsonObject) -> Turn:
    calls = cast("list[dict[str, dict[str, str]]]", message["tool_calls"] or [])
    return Turn(
        reasoning=cast("str", message["reasoning_content"] or ""),
        content=cast("str", message["content"]),
        calls=tuple(
            ToolCall(str(call["id"]), call["function"]["name"], call["function"]["arguments"])
            for call in calls
        ),
        results=(),
        finish_reason=None,
    )


def _answered(turn: Turn, message: JsonObject) -> Turn:
    result = ToolResult(
        cast("str", message["tool_call_id"]), cast("str", message["content"]), ResultSource.PROMPT
    )
    return Turn(turn.reasoning, turn.content, turn.calls, (*turn.results, result), None)


class RowChecker:
    """Checks rows under an export's settings.

    `counter` is None when the tokeniser that counted is not at hand; with `catalogs`, by
    content hash, recommendations are resolved again.
    """

    def __init__(
        self,
        *,
        min_coefficient: float,
        max_tokens: int,
        public: bool,
        counter: TokenCounter | None,
        catalogs: Mapping[str, Catalog],
    ) -> None:
        self._min_coefficient = min_coefficient
        self._max_tokens = max_tokens
        self._public = public
        self._counter = counter
        self._catalogs = catalogs

    def check(self, row: JsonObject) -> Iterator[Fault]:
        """What is wrong with a row."""
        messages = cast("list[JsonObject]", row["messages"])
        try:
            trajectory = trajectory_of(messages, cast("str", row["dialect"]))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            yield Code.MESSAGES, str(error)[:200]
            return
        said = cast("JsonObject", row["features"])
        for reject in self._gates(trajectory, cast("int", said["tokens"]), row):
            yield _CODES[reject.reason], reject.detail
        yield from self._features(trajectory, said)
        yield from self._worth(row)
        yield from self._release(row)

    def _gates(self, trajectory: Trajectory, tokens: int, row: JsonObject) -> Iterator[Reject]:
        catalog = self._catalogs.get(cast("str", row["catalog_hash"]))
        for reject in (
            unanswered_call(trajectory),
            not_one_recommendation(trajectory),
            unresolved_recommendation(
                trajectory, lambda i: catalog is None or catalog.product(i) is not None
            ),
            too_long(tokens, self._max_tokens),
            stopped_thinking(trajectory),
        ):
            if reject is not None:
                yield reject

    def _features(self, trajectory: Trajectory, said: JsonObject) -> Iterator[Fault]:
        found: Features = features(trajectory, self._counter or _Said(cast("int", said["tokens"])))
        if found.tokens != said["tokens"]:
            yield Code.TOKENS, f"{found.tokens} tokens, the row says {said['tokens']}"
        for name, value in asdict(found).items():
            value = list(value) if isinstance(value, tuple) else value
            if name != "tokens" and value != said[name]:
                yield Code.FEATURES, f"{name} is {value!r:.80}, the row says {said[name]!r:.80}"

    def _worth(self, row: JsonObject) -> Iterator[Fault]:
        worth, quality = cast("float", row["coefficient"]), cast("float", row["quality"])
        if worth < self._min_coefficient:
            yield Code.COEFFICIENT, f"{worth} is below {self._min_coefficient}"
        if coefficient(quality) != worth:
            yield Code.COEFFICIENT, f"{worth} is not what a quality of {quality} gives"
        if row["final_score"] != bool(row["success"]) * worth:
            yield Code.SCORE, f"{row['final_score']} is not success times coefficient"

    def _release(self, row: JsonObject) -> Iterator[Fault]:
        if self._public and not row["released"]:
            yield Code.RELEASE, "it is not released, and the export is public"
        if row["notice"] != ("" if row["released"] else NOT_PUBLIC):
            yield Code.RELEASE, "its notice does not say whether it is public"


class _Said:
    """Takes a row's word for its tokens."""

    exact = False
    name = "said"

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens

    def count(self, messages: Sequence[JsonObject]) -> int:
        """What the row says."""
        return self._tokens
