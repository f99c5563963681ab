"""Corpus rows as samples: rendered, checked, and counted where they are too long."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from corpus_export.tokens import head_text
from scoring.types import Json, JsonObject
from training.render.chat import ChatRenderer
from training.render.checking import assert_text
from training.types import Sample


@dataclass(slots=True)
class RenderedRows:
    """Samples, and what came of the other rows: nothing is cut, nothing vanishes."""

    samples: list[Sample] = field(default_factory=list)
    too_long: list[tuple[str, int]] = field(default_factory=list)
    """Row and tokens of each that is longer than the recipe's most."""
    tokens: int = 0
    spoken: int = 0
    """Tokens of the samples, and those of them that the model is to say."""

    def to_json(self) -> JsonObject:
        """For the report."""
        return {
            "samples": len(self.samples),
            "too_long": len(self.too_long),
            "tokens": self.tokens,
            "spoken_tokens": self.spoken,
        }


def render_rows(
    rows: Iterable[Mapping[str, Json]],
    renderer: ChatRenderer,
    max_tokens: int,
    weights: Mapping[str, float] | None = None,
) -> RenderedRows:
    """A sample for each row of at most `max_tokens`; the mask of each is checked against its text.

    `weights` by bucket make rows count more or less. Raises MaskError and RenderError.
    """
    found = RenderedRows()
    for row in rows:
        sample = render_row(row, renderer, (weights or {}).get(str(row.get("bucket")), 1.0))
        if len(sample) > max_tokens:
            found.too_long.append((sample.row, len(sample)))
            continue
        found.samples.append(sample)
        found.tokens += len(sample)
        found.spoken += int(sample.mask.sum())
    return found


def render_row(row: Mapping[str, Json], renderer: ChatRenderer, weight: float = 1.0) -> Sample:
    """One row of a corpus, or of what rollouts kept. Raises MaskError and RenderError."""
    messages = cast("list[JsonObject]", row["messages"])
    rendered = renderer.render_sample(messages, tools_of(row))
    sample = Sample(
        ids=rendered.ids,
        mask=rendered.mask,
        row=str(row.get("record_hash") or row.get("row")),
        cluster=str(row["cluster"]),
        weight=weight,
    )
    assert_text(sample, messages, renderer.tokenizer)
    return sample


def tools_of(row: Mapping[str, Json]) -> list[JsonObject]:
    """The tools of a row; a corpus holds them as JSON text."""
    tools = row.get("tools")
    found = json.loads(tools) if isinstance(tools, str) else tools
    return cast("list[JsonObject]", found or [])


def system_block(messages: list[JsonObject]) -> str:
    """The text between the marks of a row's system message, tools and all.

    The same in every row; a small tokenizer makes one token of it.
    """
    return head_text(messages).removeprefix("<|im_start|>").removesuffix("<|im_end|>\n")
