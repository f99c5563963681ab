"""What recomputing needs besides the records: problems with rewards, sources, a catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import orjson
import zstandard

from arena.problems.suite import load_suites
from arena.records.verification.findings import Check, Code, Report
from arena.runs.problems import problem_content
from sandbox.catalog import open_catalog
from sandbox.catalog.interface import Catalog
from scoring.exceptions import ProblemError
from scoring.outcome import RULES_VERSION
from scoring.reading import read_problem
from scoring.titles import LexicalTitles, NoTitles, TitleSimilarity
from scoring.types import Problem

MAX_SOURCE_BYTES = 64 << 20
_OPEN_PROBLEMS = 4_096
_OPEN_SOURCES = 256


@dataclass(frozen=True, slots=True)
class Materials:
    """Where it all lies. Goes to other processes, so that only bytes and paths stand here.

    `problems` are canonical JSON by its SHA-256, `sources` agents' files by theirs: a path,
    or the file compressed with zstandard.
    """

    problems: Mapping[str, bytes] = field(default_factory=dict)
    sources: Mapping[str, bytes | Path] = field(default_factory=dict)
    catalog: Path | None = None

    def with_suites(self, suites: Iterable[Path]) -> Materials:
        """With the problems of suite files. Raises ProblemError for one that is broken."""
        contents = [problem_content(problem) for problem in load_suites(list(suites))]
        return self.with_problems(contents)

    def with_problems(self, contents: Iterable[bytes]) -> Materials:
        """With these problems, each as canonical JSON."""
        added = {hashlib.sha256(content).hexdigest(): content for content in contents}
        return Materials({**self.problems, **added}, self.sources, self.catalog)

    def with_sources(self, sources: Mapping[str, bytes | Path]) -> Materials:
        """With these agents' files."""
        return Materials(self.problems, {**self.sources, **sources}, self.catalog)

    def with_catalog(self, catalog: Path | None) -> Materials:
        """With this catalogue."""
        return Materials(self.problems, self.sources, catalog or self.catalog)


class Workbench:
    """The materials, opened. One a process."""

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self.catalog: Catalog | None = (
            open_catalog(materials.catalog) if materials.catalog is not None else None
        )
        self.problem = lru_cache(_OPEN_PROBLEMS)(self._problem)
        self.source = lru_cache(_OPEN_SOURCES)(self._source)

    def titles(self, scoring_version: str) -> TitleSimilarity | str:
        """What compared titles, or why it cannot be had here."""
        rules, _, name = scoring_version.partition("+titles-")
        if rules != f"rules-{RULES_VERSION}":
            return f"scored by other rules than rules-{RULES_VERSION}"
        known: tuple[TitleSimilarity, ...] = (NoTitles(), LexicalTitles())
        for titles in known:
            if titles.name == name:
                return titles
        return "the model that compared titles is not here"

    def _problem(self, content_hash: str | None) -> Problem | None:
        content = self._materials.problems.get(content_hash or "")
        if content is None:
            return None
        try:
            return read_problem(orjson.loads(content))
        except (ValueError, ProblemError):
            return None

    def _source(self, source_hash: str) -> bytes | None:
        """An agent's file; None when it is not here, or is not the one it is filed as."""
        held = self._materials.sources.get(source_hash)
        if held is None:
            return None
        try:
            source = (
                held.read_bytes()
                if isinstance(held, Path)
                else zstandard.decompress(held, max_output_size=MAX_SOURCE_BYTES)
            )
        except (OSError, zstandard.ZstdError):
            return None
        return source if hashlib.sha256(source).hexdigest() == source_hash else None


def check_materials(materials: Materials, report: Report) -> None:
    """Whether sources and problems are what they are filed as."""
    bench = Workbench(Materials(materials.problems, materials.sources))
    for source_hash in materials.sources:
        if bench.source(source_hash) is None:
            detail = "a source that is not the file with this SHA-256"
            report.found(Code.FILE_NOT_NAMED, Check.FILES, f"agents/{source_hash}", detail)
    for content_hash in materials.problems:
        if bench.problem(content_hash) is None:
            report.found(Code.FILE_UNREADABLE, Check.FILES, f"problem {content_hash}", "no problem")
