"""Titles by embedding: the suite's vectors first, and one clear line without the library."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from arena.exceptions import SettingsError
from arena.problems.titles import (
    DEFAULT_MODEL,
    EmbeddingTitles,
    TitleMode,
    cosine,
    load_encoder,
    model_identity,
    title_similarity,
)
from tests.unit.scoring.builders import problem


class Letters:
    """An encoder of three numbers, which remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, title: str) -> tuple[float, ...]:
        self.asked.append(title)
        return tuple(float(title.count(letter)) for letter in "abc")


def test_the_suites_own_vector_stands_for_the_reward() -> None:
    encode = Letters()
    titles = EmbeddingTitles("letters", encode)
    with_vector = replace(problem(), title_embeddings={"reward": (0.0, 2.0, 0.0)})
    assert titles.similarity(with_vector, "reward", "b") == pytest.approx(1.0)
    assert titles.similarity(with_vector, "reward", "a") == pytest.approx(0.0)
    assert encode.asked == ["b", "a"]


def test_a_title_without_a_vector_or_with_another_models_is_encoded() -> None:
    encode = Letters()
    titles = EmbeddingTitles("letters", encode)
    other_model = replace(problem(), title_embeddings={"ab": (1.0,) * 8})
    assert titles.similarity(other_model, "ab", "a") == pytest.approx(0.5**0.5)
    assert titles.similarity(problem(), "ab", "ab") == pytest.approx(1.0)
    assert sorted(encode.asked) == ["a", "ab"]  # each once


def test_a_vector_without_direction_says_nothing() -> None:
    assert cosine((0.0, 0.0), (1.0, 0.0)) is None
    assert cosine((float("inf"), 0.0), (1.0, 0.0)) is None
    assert cosine((1.0,), (1.0, 0.0)) is None
    assert EmbeddingTitles("letters", Letters()).similarity(problem(), "x", "a") is None


def test_the_name_says_which_model_decided_and_no_path(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    first = model_identity(str(folder))
    assert first.startswith("my-model-")
    assert str(tmp_path) not in first
    (folder / "weights").write_bytes(b"2")
    assert model_identity(str(folder)) != first
    assert EmbeddingTitles(DEFAULT_MODEL, Letters()).name == f"embedding-{DEFAULT_MODEL}"


def test_each_mode_has_its_comparison() -> None:
    assert title_similarity(TitleMode.NONE).name == "none"
    assert title_similarity(TitleMode.LEXICAL).name.startswith("lexical")


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is not None,
    reason="sentence-transformers is installed",
)
def test_without_the_library_one_line_names_the_extra() -> None:
    with pytest.raises(SettingsError) as caught:
        title_similarity(TitleMode.EMBEDDING)
    assert "sn15-arena[training]" in str(caught.value)


@pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None,
    reason="sentence-transformers is not installed",
)
def test_a_model_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be loaded"):
        load_encoder(str(tmp_path / "absent"))
