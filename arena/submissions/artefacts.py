"""The manifest of a model artefact: which files a submission's model is, to the byte.

A miner's own model server proves nothing: it could answer with anything. So a submission
names files, pinned by SHA-256, and every validator serves them itself. The manifest is all
that is stored with a version; its hash names the model everywhere, in records as well.

What may be named: weights as safetensors, configuration as JSON, a chat template as text.
Nothing that is run: no pickles, no Python, no reference to code elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from arena.exceptions import ArtefactError
from arena.runs.canonical import canonical
from sandbox.strict_json import read
from scoring.types import JsonObject

MANIFEST_SCHEMA = 1
MAX_MANIFEST_BYTES = 256 << 10
CHAT_TEMPLATE = "chat_template.jinja"
INDEX = "model.safetensors.index.json"
ADAPTER_CONFIG = "adapter_config.json"
JSON_FILES = frozenset(
    {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "training.json",
        ADAPTER_CONFIG,
        INDEX,
    }
)
_WEIGHTS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}\.safetensors")
_HUB = re.compile(
    r"hub:(?P<repo>[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})"
    r"@(?P<revision>[0-9a-f]{40})"
)
UPLOAD = "upload"
_GIB = 1 << 30


class Kind(StrEnum):
    """What an artefact is."""

    MODEL = "model"
    ADAPTER = "adapter"
    """LoRA weights for a base model that is named beside them."""


@dataclass(frozen=True, slots=True)
class ArtefactLimits:
    """How large an artefact may be. An adapter's base counts with it. Sizes in bytes."""

    files: int = 64
    file_bytes: int = 8 * _GIB
    bytes: int = 24 * _GIB
    json_bytes: int = 64 << 20
    """The largest JSON file; a tokeniser of 250,000 tokens has about 35 MB."""
    header_bytes: int = 16 << 20
    """The longest header of a safetensors file."""
    context: int = 131_072


_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ArtefactFile(_Model):
    """One file: its plain name, its SHA-256 and its length."""

    path: str
    sha256: _Sha256
    bytes: Annotated[int, Field(ge=1, le=1 << 40)]


class BaseModelFiles(_Model):
    """The model that an adapter is for: on the hub, pinned like everything else."""

    source: Annotated[str, StringConstraints(max_length=300)]
    files: Annotated[tuple[ArtefactFile, ...], Field(min_length=1, strict=False)]


class _Fields(_Model):
    schema_: Annotated[Literal[1], Field(alias="schema")]
    kind: Annotated[Kind, Field(strict=False)]
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$")]
    source: Annotated[str, StringConstraints(max_length=300)]
    files: Annotated[tuple[ArtefactFile, ...], Field(min_length=1, strict=False)]
    base: BaseModelFiles | None = None
    context: Annotated[int, Field(ge=256, le=1 << 24)]
    dtype: Literal["bfloat16", "float16", "float32"]
    chat_format: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,39}$")]


@dataclass(frozen=True, slots=True)
class HubSource:
    """A repository of the hub at one commit."""

    repo: str
    revision: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A model artefact, checked as far as that goes without its files.

    `source` is `upload` (the arena's own store) or `hub:owner/name@commit`. `context` is in
    tokens. `chat_format` is how messages become a prompt: `template` (the artefact's own chat
    template) or a format that the model server knows by name. Files stand in order of path.
    """

    kind: Kind
    name: str
    source: str
    files: tuple[ArtefactFile, ...]
    base: BaseModelFiles | None
    context: int
    dtype: str
    chat_format: str

    @property
    def hash(self) -> str:
        """SHA-256 of the manifest's canonical JSON: the name of this model."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()

    @property
    def bytes(self) -> int:
        """The size of all its files, its base's among them."""
        return sum(file.bytes for file in self.all_files)

    @property
    def all_files(self) -> tuple[ArtefactFile, ...]:
        """Its own files, then its base's."""
        return (*self.files, *(self.base.files if self.base is not None else ()))

    def to_json(self) -> JsonObject:
        """The form that `parse_manifest` reads."""
        base: JsonObject | None = None
        if self.base is not None:
            base = {"source": self.base.source, "files": [_file_json(f) for f in self.base.files]}
        return {
            "schema": MANIFEST_SCHEMA,
            "kind": self.kind.value,
            "name": self.name,
            "source": self.source,
            "files": [_file_json(file) for file in self.files],
            "base": base,
            "context": self.context,
            "dtype": self.dtype,
            "chat_format": self.chat_format,
        }

    @classmethod
    def of(cls, value: Any, limits: ArtefactLimits | None = None) -> Self:
        """Read a decoded manifest. Raises ArtefactError naming what is wrong with it."""
        try:
            fields = _Fields.model_validate(value)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])[:100]
            raise ArtefactError(f"the manifest: {place or 'it'}: {first['msg'][:200]}") from None
        base = fields.base
        if base is not None:
            base = BaseModelFiles(source=base.source, files=_in_order(base.files))
        manifest = cls(
            fields.kind,
            fields.name,
            fields.source,
            _in_order(fields.files),
            base,
            fields.context,
            fields.dtype,
            fields.chat_format,
        )
        _check(manifest, limits or ArtefactLimits())
        return manifest


def parse_manifest(text: str | bytes, limits: ArtefactLimits | None = None) -> Manifest:
    """Read a manifest from JSON that a stranger wrote.

    Raises ArtefactError (the submitter's fault) with one line that says what is wrong.
    """
    try:
        data = text.encode("utf-8") if isinstance(text, str) else text
        if len(data) > MAX_MANIFEST_BYTES:
            raise ArtefactError(f"a manifest has at most {MAX_MANIFEST_BYTES:,} bytes")
        return Manifest.of(read(data), limits)
    except ValueError as error:
        raise ArtefactError(f"the manifest: {error}") from None


def parse_source(source: str) -> HubSource | None:
    """Where files come from: a place on the hub; None for the arena's own store.

    Raises ArtefactError for anything else, and for a revision that is no full commit hash:
    a branch or a tag may be moved.
    """
    if source == UPLOAD:
        return None
    found = _HUB.fullmatch(source)
    if found is None or ".." in found["repo"]:
        raise ArtefactError(
            "a source is `upload` or `hub:owner/name@` and the 40 hexadecimal digits of a commit",
            remedy="a branch or a tag can be moved: give the commit",
        )
    return HubSource(found["repo"], found["revision"])


def check_path(path: str) -> str:
    """A name that a file of an artefact may have. Raises ArtefactError for every other."""
    if path in JSON_FILES or path == CHAT_TEMPLATE:
        return path
    if _WEIGHTS.fullmatch(path) and ".." not in path:
        return path
    raise ArtefactError(
        f"a file may not be called {path[:100]!r}",
        remedy="an artefact holds *.safetensors, "
        + ", ".join(sorted(JSON_FILES))
        + f" and {CHAT_TEMPLATE}, in no folder",
    )


def is_weights(path: str) -> bool:
    """Whether a file of this name holds weights."""
    return path.endswith(".safetensors")


def _check(manifest: Manifest, limits: ArtefactLimits) -> None:
    parse_source(manifest.source)
    _check_files(manifest.files, limits, "the artefact")
    if manifest.kind is Kind.MODEL:
        if manifest.base is not None:
            raise ArtefactError("a whole model has no base")
        _check_has(manifest.files, ("config.json", "tokenizer.json"), "a model")
    else:
        if manifest.base is None:
            raise ArtefactError("an adapter names the base model that it is for")
        if parse_source(manifest.base.source) is None:
            raise ArtefactError("a base model comes from the hub")
        _check_files(manifest.base.files, limits, "the base")
        _check_has(manifest.files, (ADAPTER_CONFIG,), "an adapter")
        _check_has(manifest.base.files, ("config.json", "tokenizer.json"), "a base model")
    if len(manifest.all_files) > limits.files:
        raise ArtefactError(f"an artefact has at most {limits.files} files")
    if manifest.bytes > limits.bytes:
        raise ArtefactError(
            f"the artefact has {manifest.bytes:,} bytes, {limits.bytes:,} are allowed"
        )
    if manifest.context > limits.context:
        raise ArtefactError(f"a context has at most {limits.context:,} tokens")


def _check_files(files: Iterable[ArtefactFile], limits: ArtefactLimits, what: str) -> None:
    seen: set[str] = set()
    for file in files:
        check_path(file.path)
        if file.path.lower() in seen:
            raise ArtefactError(f"{what} names {file.path} twice")
        seen.add(file.path.lower())
        most = limits.file_bytes if is_weights(file.path) else limits.json_bytes
        if file.bytes > most:
            raise ArtefactError(f"{file.path} has {file.bytes:,} bytes, {most:,} are allowed")


def _check_has(files: Iterable[ArtefactFile], wanted: Iterable[str], what: str) -> None:
    paths = {file.path for file in files}
    missing = [name for name in wanted if name not in paths]
    if missing:
        raise ArtefactError(f"{what} needs {' and '.join(missing)}")
    if not any(is_weights(path) for path in paths):
        raise ArtefactError(f"{what} needs weights: a .safetensors file")


def _in_order(files: Iterable[ArtefactFile]) -> tuple[ArtefactFile, ...]:
    return tuple(sorted(files, key=lambda file: file.path))


def _file_json(file: ArtefactFile) -> JsonObject:
    return {"path": file.path, "sha256": file.sha256, "bytes": file.bytes}
