"""Practice in copying, for weights that can do nothing yet: ids that a row's tools showed, said
again in another order.

To recommend a product is to copy its id out of what a tool answered. Nothing else in a row
asks so much of a small model, and little in it teaches that: until attention for it has
formed, the loss stands still at what can be said without looking. Short samples of nothing
but copying form it within minutes.

A drill is no conversation: it lists the ids of one row, with some of the row's tokens between
them, and then says them again, twice. Only what can be copied is learnt from: each masked
token has come before, behind the same token as now. It stands under its row's cluster, and
the guard sees it as it sees the row.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from pydantic import Field

from scoring.types import JsonObject
from training.corpus import Row
from training.exceptions import CorpusRefusedError, MaskError
from training.recipe import Count, Settings
from training.types import Sample

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TWICE: Final = 2
"""A drill says each of its ids so often."""
PAIRS: Final = 0.6
"""So much of the practice is with two ids; then they grow evenly to the most. Which of two it
is, a model finds out much sooner than which of ten, and then knows it of ten as well."""
FILLED: Final = 3
"""At most so many other tokens follow an id where it is shown, so that none is found by
counting: it takes the token before to find the next one."""
_ID: Final = re.compile(r'"product_id":\s*"(\d+)"')


class DrillSettings(Settings):
    """How much is practised, and when."""

    updates: Count
    """Updates of drills alone, before the first row."""
    tokens: Count = 768
    """Of each of them, about."""
    most: int = Field(default=10, ge=2)
    """Ids in the longest drills."""
    beside: int = Field(default=1, ge=0)
    """Drills of the longest kind in each later update, beside its rows."""


@dataclass(frozen=True, slots=True)
class Drill(Sample):
    """A sample whose masked tokens are copies."""


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a row gives to practise with: ids as tokens, and tokens to put between them."""

    row: str
    cluster: str
    ids: tuple[tuple[int, ...], ...]
    others: tuple[int, ...]


class Drills:
    """Drills from the ids that rows show; the seed and the update alone decide which.

    Raises CorpusRefusedError where no row shows two products.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        tokenizer: PreTrainedTokenizerBase,
        settings: DrillSettings,
        seed: int,
    ) -> None:
        shown = [_shown(row, tokenizer) for row in rows]
        self._shown = [one for one in shown if len(one.ids) > 1]
        if not self._shown:
            raise CorpusRefusedError("no row shows two products: there is nothing to practise with")
        self._seed = seed
        self.settings = settings

    def alone(self, update: int) -> list[Drill]:
        """The samples of an update of drills alone."""
        rng = self._rng(update)
        most = ids_at(update, self.settings)
        drills: list[Drill] = []
        while sum(map(len, drills)) < self.settings.tokens:
            drills.append(self._drill(rng, most))
        return drills

    def beside(self, update: int) -> list[Drill]:
        """The drills of a later update."""
        rng = self._rng(update)
        return [self._drill(rng, self.settings.most) for _ in range(self.settings.beside)]

    def _rng(self, update: int) -> random.Random:
        return random.Random(f"{self._seed} drills {update}")  # noqa: S311

    def _drill(self, rng: random.Random, most: int) -> Drill:
        shown = rng.choice(self._shown)
        chosen = rng.sample(shown.ids, min(most, len(shown.ids)))
        tokens: list[int] = []
        mask: list[bool] = []
        behind = rng.choice(shown.others)
        for one in chosen:
            filling = rng.choices(shown.others, k=rng.randint(0, FILLED))
            tokens += [*one, behind, *filling]
        mask += [False] * len(tokens)
        for _ in range(TWICE):
            behind = rng.choice(shown.others)
            for one in rng.sample(chosen, len(chosen)):
                tokens += [*one, behind]
                mask += [False, *[True] * (len(one) - 1), False]
        ids = np.asarray(tokens, dtype=np.int32)
        return Drill(ids, np.asarray(mask, dtype=np.bool_), shown.row, shown.cluster)


def ids_at(update: int, settings: DrillSettings) -> int:
    """How many ids a drill of this update has, of those before the first row."""
    pairs = PAIRS * settings.updates
    if update < pairs:
        return 2
    grown = (update - pairs) / max(1.0, settings.updates - pairs)
    return min(settings.most, 3 + int(grown * (settings.most - 2)))


def assert_copied(drill: Drill) -> None:
    """Raise MaskError unless each masked token has come before, behind the same token."""
    ids = drill.ids.tolist()
    seen: set[tuple[int, int]] = set()
    for place in range(1, len(ids)):
        pair = (ids[place - 1], ids[place])
        if drill.mask[place] and pair not in seen:
            raise MaskError(f"a drill of row {drill.row[:80]} asks for what it has not shown")
        seen.add(pair)
    if len(ids) != len(drill.mask) or drill.mask[0] or not drill.mask.any():
        raise MaskError(f"a drill of row {drill.row[:80]} has no mask that fits it")


def _shown(row: Row, tokenizer: PreTrainedTokenizerBase) -> _Shown:
    """Ids of one token give nothing to copy behind, and are left out."""
    messages = cast("list[JsonObject]", row["messages"])
    texts = [str(one.get("content") or "") for one in messages if one.get("role") == "tool"]
    found = dict.fromkeys(one for text in texts for one in _ID.findall(text))
    encoded = (_encoded(tokenizer, one) for one in found)
    ids = tuple(one for one in encoded if len(one) > 1)
    others = dict.fromkeys(token for text in texts for token in _encoded(tokenizer, text))
    return _Shown(str(row["record_hash"]), str(row["cluster"]), ids, tuple(others))


def _encoded(tokenizer: PreTrainedTokenizerBase, text: str) -> tuple[int, ...]:
    return tuple(cast("list[int]", tokenizer.encode(text, add_special_tokens=False)))
