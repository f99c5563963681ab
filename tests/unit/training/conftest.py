"""A small corpus, a small tokenizer and one thread for all tests of this room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.unit.corpus_export.days import full_day
from tests.unit.training.small import TOKENIZER_TEXTS, tokenizer_of
from training.render.chat import ChatRenderer
from training.tokenizing.small import LEAST


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """The machine runs other tests as well."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def day_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of a made-up day: 18 rows of nine problems, some of them for evaluation."""
    directory = tmp_path_factory.mktemp("corpus")
    patch = pytest.MonkeyPatch()
    patch.setenv("ARENA_DATA_DIR", str(directory / "data"))
    try:
        full_day(directory / "day").export(directory / "corpus", max_tokens=100_000)
    finally:
        patch.undo()
    return directory / "corpus"


@pytest.fixture(scope="session")
def renderer() -> ChatRenderer:
    """Over a small tokenizer of the family."""
    return ChatRenderer(tokenizer_of(TOKENIZER_TEXTS, LEAST + 200))
