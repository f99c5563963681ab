"""One worker for the tests that read files in it; the measured set's bank."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from arena.problems.suite import load_suite
from arena.submissions.answers import AnswerIndex
from arena.submissions.process import Reader
from scoring.types import Problem
from tests.unit.arena.submissions.measured import BANK


@pytest.fixture(scope="session")
def reader() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.fixture(scope="session")
def problems() -> tuple[Problem, ...]:
    return load_suite(BANK).problems


@pytest.fixture(scope="session")
def bank(problems: tuple[Problem, ...]) -> AnswerIndex:
    return AnswerIndex.build(problems)
