"""The files of an artefact, looked at without loading them: hashes, headers, JSON.

A safetensors file is a length, a JSON header and raw numbers: the header is parsed and held
against the file, and the numbers are nobody's code. JSON files are parsed, and refused when
they ask a loader to run code from elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from arena.exceptions import ArtefactError
from arena.submissions.artefacts import (
    ADAPTER_CONFIG,
    CHAT_TEMPLATE,
    INDEX,
    UPLOAD,
    ArtefactFile,
    ArtefactLimits,
    BaseModelFiles,
    Kind,
    Manifest,
    check_path,
    is_weights,
    parse_source,
)
from sandbox.strict_json import read
from scoring.types import Json

CHUNK = 1 << 20
MAX_TEMPLATE_BYTES = 256 << 10
MAX_DEPTH = 64
MAX_TENSOR_DIMENSIONS = 16
_LENGTH = 8
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
"""Bits of one number of every dtype that safetensors names and whole bytes hold."""
_CODE_KEYS = frozenset(
    {
        "auto_map",
        "trust_remote_code",
        "custom_generate",
        "custom_pipelines",
        "attn_implementation",
        "_attn_implementation",
        "_attn_implementation_internal",
        "experts_implementation",
        "_experts_implementation",
        "kernel_config",
        "use_kernels",
    }
)
"""Keys by which loaders are led to code, or to kernels that they fetch."""


def make_manifest(
    directory: Path,
    *,
    name: str | None = None,
    base: BaseModelFiles | None = None,
    context: int | None = None,
    dtype: str | None = None,
    chat_format: str = "template",
    source: str = UPLOAD,
    limits: ArtefactLimits | None = None,
) -> Manifest:
    """The manifest of a directory's files, each of them checked.

    What is not given is read from `config.json` (for an adapter: given, or 32,768 tokens of
    bfloat16). Raises ArtefactError for a file that may not be there, naming it.
    """
    limits = limits or ArtefactLimits()
    files = []
    for path in _listed(directory):
        files.append(ArtefactFile(path=path.name, **_digest(path)))
        check_content(path, path.name, limits)
    kind = Kind.ADAPTER if any(f.path == ADAPTER_CONFIG for f in files) else Kind.MODEL
    config = _config(directory / "config.json", limits) if kind is Kind.MODEL else {}
    given = config.get("max_position_embeddings")
    found_context = given if isinstance(given, int) and given >= 256 else 32_768
    found_dtype = config.get("dtype") or config.get("torch_dtype") or "bfloat16"
    manifest = Manifest.of(
        {
            "schema": 1,
            "kind": kind.value,
            "name": name or directory.resolve().name,
            "source": source,
            "files": [file.model_dump() for file in files],
            "base": None if base is None else base.model_dump(mode="json"),
            "context": context or min(found_context, limits.context),
            "dtype": dtype or found_dtype,
            "chat_format": chat_format,
        },
        limits,
    )
    check_together(directory, manifest, limits)
    return manifest


def check_file(path: Path, file: ArtefactFile, limits: ArtefactLimits) -> None:
    """Hold a file against its manifest, the hash first, and look into it then.

    Raises ArtefactError when it is another file, or one that may not be served.
    """
    check_hash(path, file)
    check_content(path, file.path, limits)


def check_hash(path: Path, file: ArtefactFile) -> None:
    """Raises ArtefactError when the file's length or SHA-256 is not the manifest's."""
    if path.is_symlink() or not path.is_file():
        raise ArtefactError(f"{file.path} is no plain file")
    if _digest(path) != {"sha256": file.sha256, "bytes": file.bytes}:
        raise ArtefactError(f"{file.path} is not the file that the manifest names")


def check_content(path: Path, name: str, limits: ArtefactLimits) -> None:
    """Look into one file under the name that it has. Raises ArtefactError."""
    check_path(name)
    if is_weights(name):
        check_safetensors(path, name, limits)
    elif name == CHAT_TEMPLATE:
        _check_template(path)
    else:
        _check_json(path, name, limits)


def check_together(directory: Path, manifest: Manifest, limits: ArtefactLimits) -> None:
    """What files of one artefact say of each other. Raises ArtefactError.

    An index names only shards that are there; an adapter names the base that the manifest
    names, and no other.
    """
    paths = {file.path for file in manifest.files}
    if INDEX in paths:
        _check_index(directory / INDEX, paths, limits)
    if manifest.base is None:
        return
    config = _config(directory / ADAPTER_CONFIG, limits)
    base = parse_source(manifest.base.source)
    named = config.get("base_model_name_or_path")
    if base is None or named != base.repo:
        told = named[:100] if isinstance(named, str) else named
        raise ArtefactError(
            f"{ADAPTER_CONFIG} is for the base {told!r}, the manifest for {manifest.base.source}"
        )


def check_safetensors(path: Path, name: str, limits: ArtefactLimits) -> None:
    """Parse the header of a safetensors file and hold it against the file's length.

    The format's own rules (safetensors README, "Format"): an 8-byte little-endian length, a
    JSON object, tensors that lie end to end and fill the rest, no key twice. Raises
    ArtefactError.
    """
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header = _header(file, size, name, limits)
    spans = []
    for tensor, told in header.items():
        if tensor == "__metadata__":
            if not _is_text_map(told):
                raise ArtefactError(f"{name}: __metadata__ holds something else than texts")
            continue
        spans.append(_span(tensor, told, name))
    end = 0
    for begin, after in sorted(spans):
        if begin != end:
            raise ArtefactError(f"{name}: tensors overlap, or leave a hole, at byte {begin}")
        end = after
    if not spans:
        raise ArtefactError(f"{name} holds no tensor")
    data = size - _LENGTH - _header_length(path)
    if end != data:
        raise ArtefactError(f"{name}: the tensors take {end:,} bytes, the file has {data:,}")


def _header_length(path: Path) -> int:
    with path.open("rb") as file:
        return int.from_bytes(file.read(_LENGTH), "little")


def _header(file: BinaryIO, size: int, name: str, limits: ArtefactLimits) -> dict[str, Json]:
    length = int.from_bytes(file.read(_LENGTH), "little")
    if size < _LENGTH + 2 or length > size - _LENGTH:
        raise ArtefactError(f"{name} is no safetensors file: its header ends beyond the file")
    if length > limits.header_bytes:
        raise ArtefactError(
            f"{name}: its header has {length:,} bytes, {limits.header_bytes:,} are allowed"
        )
    try:
        header = read(file.read(length))
    except ValueError as error:
        raise ArtefactError(f"{name}: its header: {error}") from None
    if not isinstance(header, dict):
        raise ArtefactError(f"{name}: its header is no JSON object")
    return header


def _span(tensor: str, told: Json, name: str) -> tuple[int, int]:
    """Where a tensor's bytes lie, as far as its dtype and shape agree."""
    label = f"{name}: tensor {tensor[:100]!r}"
    if not isinstance(told, dict) or set(told) != {"dtype", "shape", "data_offsets"}:
        raise ArtefactError(f"{label} is described otherwise than by dtype, shape and offsets")
    dtype, shape, offsets = told["dtype"], told["shape"], told["data_offsets"]
    bits = _BITS.get(dtype) if isinstance(dtype, str) else None
    if bits is None:
        raise ArtefactError(f"{label} has the dtype {str(dtype)[:40]!r}, which nobody knows here")
    if not _are_sizes(shape) or len(shape) > MAX_TENSOR_DIMENSIONS:
        raise ArtefactError(f"{label} has no shape")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[1] < offsets[0]:
        raise ArtefactError(f"{label} has no offsets")
    wanted = math.prod(shape) * bits // 8
    if offsets[1] - offsets[0] != wanted:
        raise ArtefactError(f"{label} needs {wanted:,} bytes and has {offsets[1] - offsets[0]:,}")
    return offsets[0], offsets[1]


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(
        isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
    )


def _is_text_map(value: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _check_json(path: Path, name: str, limits: ArtefactLimits) -> None:
    value = _load(path, name, limits)
    if not isinstance(value, dict):
        raise ArtefactError(f"{name} is no JSON object")
    if name == "tokenizer.json":
        return  # its vocabulary may hold any word as a key
    for key in _keys(value, name):
        if key in _CODE_KEYS:
            raise ArtefactError(
                f"{name} has the key {key!r}: models that bring or fetch code are not served",
                remedy="take the key out, and use an architecture that the server knows",
            )


def _load(path: Path, name: str, limits: ArtefactLimits) -> Any:
    size = path.stat().st_size
    if size > limits.json_bytes:
        raise ArtefactError(f"{name} has {size:,} bytes, {limits.json_bytes:,} are allowed")
    try:
        return json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        told = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise ArtefactError(f"{name} is not JSON: {told}") from None


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return value


def _keys(root: Any, name: str) -> Iterator[str]:
    """Every key at any depth, level by level: the depth itself is being checked."""
    level = [root]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                yield from value
                below.extend(value.values())
            elif isinstance(value, list):
                below.extend(value)
        if not below:
            return
        level = below
    raise ArtefactError(f"{name} is nested deeper than {MAX_DEPTH} levels")


def _check_template(path: Path) -> None:
    if path.stat().st_size > MAX_TEMPLATE_BYTES:
        raise ArtefactError(f"a chat template has at most {MAX_TEMPLATE_BYTES:,} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ArtefactError(f"{CHAT_TEMPLATE} is not UTF-8") from None
    if "\x00" in text:
        raise ArtefactError(f"{CHAT_TEMPLATE} holds a NUL byte")


def _check_index(path: Path, paths: set[str], limits: ArtefactLimits) -> None:
    index = _config(path, limits)
    shards = index.get("weight_map")
    if not _is_text_map(shards):
        raise ArtefactError(f"{INDEX} holds no weight_map")
    strange = sorted(set(shards.values()) - paths)
    if strange:
        raise ArtefactError(f"{INDEX} names {strange[0][:100]!r}, which is not among the files")


def _config(path: Path, limits: ArtefactLimits) -> dict[str, Any]:
    if not path.is_file():
        raise ArtefactError(f"{path.name} is missing")
    value = _load(path, path.name, limits)
    if not isinstance(value, dict):
        raise ArtefactError(f"{path.name} is no JSON object")
    return value


def _listed(directory: Path) -> list[Path]:
    """The plain files of a directory. Raises ArtefactError for anything that may not be there."""
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise ArtefactError(f"{directory}: {error.strerror}") from None
    for entry in entries:
        if not stat.S_ISREG(entry.lstat().st_mode):
            raise ArtefactError(f"{entry.name[:100]!r} is a link or a folder, not a plain file")
        check_path(entry.name)
    return entries


def _digest(path: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size}
