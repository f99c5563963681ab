"""Title similarity by a sentence-transformers model, SN15's own way of comparing titles.

The suite's embeddings of reward titles are used where a problem has them, so that all
validators hold product titles against the same vectors; the model makes the others. Its
library is an extra and is imported when the first title is compared.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, cast

from arena.exceptions import SettingsError
from scoring.titles import LexicalTitles, NoTitles, TitleSimilarity
from scoring.types import Problem

DEFAULT_MODEL = "Qwen/Qwen3-Embedding-0.6B"
"""What SN15's validator compares with; also the name of a folder that holds the model."""

CACHED_TITLES = 50_000
"""Product titles whose vectors are kept: agents recommend the same products again."""

Vector = Sequence[float]
Encode = Callable[[str], Vector]
"""Makes the embedding of one title."""


class TitleMode(StrEnum):
    """How titles are compared: `--title` of a race."""

    NONE = "none"
    LEXICAL = "lexical"
    EMBEDDING = "embedding"


def title_similarity(mode: TitleMode, model: str = DEFAULT_MODEL) -> TitleSimilarity:
    """The comparison that `mode` names.

    `model` is a hub name or a folder, for `embedding`, whose library is loaded here so
    that its absence is known before a race begins: SettingsError names the extra.
    """
    match mode:
        case TitleMode.NONE:
            return NoTitles()
        case TitleMode.LEXICAL:
            return LexicalTitles()
        case TitleMode.EMBEDDING:
            return EmbeddingTitles(model, load_encoder(model))


class EmbeddingTitles:
    """Cosine similarity of embeddings, -1 to 1."""

    def __init__(self, model: str, encode: Encode) -> None:
        self.name = f"embedding-{model_identity(model)}"
        self._encode = encode
        self._known: dict[str, Vector] = {}

    def similarity(self, problem: Problem, reward_title: str, product_title: str) -> float | None:
        """Compare two titles; None where one has a vector without a direction."""
        product = self._vector(product_title)
        reward: Vector = problem.title_embeddings.get(reward_title, ())
        if len(reward) != len(product):  # none in the suite, or another model's
            reward = self._vector(reward_title)
        return cosine(reward, product)

    def _vector(self, title: str) -> Vector:
        known = self._known.get(title)
        if known is None:
            if len(self._known) >= CACHED_TITLES:
                self._known.clear()
            known = self._known[title] = self._encode(title)
        return known


def cosine(a: Vector, b: Vector) -> float | None:
    """The cosine of the angle between two vectors; None where there is no such angle."""
    size = math.hypot(*a) * math.hypot(*b)
    if len(a) != len(b) or not size or not math.isfinite(size):
        return None
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / size


def model_identity(model: str) -> str:
    """A name for records: a hub name as it is, a folder by its name and its content."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256")
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + content.digest())
    return f"{folder.resolve().name}-{digest.hexdigest()[:16]}"


class _Encoder(Protocol):
    def encode(self, sentences: str, *, show_progress_bar: bool) -> Any: ...


def load_encoder(model: str) -> Encode:
    """Load a sentence-transformers model. Raises SettingsError when that is not possible."""
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError:
        raise SettingsError(
            "comparing titles by embedding needs sentence-transformers",
            remedy="pip install 'sn15-arena[training]'",
        ) from None
    try:
        loaded = cast("_Encoder", library.SentenceTransformer(model))
    except (OSError, ValueError) as error:
        first_line = str(error).strip().split("\n")[0]
        raise SettingsError(f"the title model {model} cannot be loaded: {first_line}") from None
    return lambda title: [float(x) for x in loaded.encode(title, show_progress_bar=False)]
