"""Manifests and files of strangers: what is no artefact is refused, whatever it is."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.exceptions import ArtefactError
from arena.submissions.artefact_files import check_file, check_safetensors, make_manifest
from arena.submissions.artefacts import (
    ArtefactFile,
    ArtefactLimits,
    BaseModelFiles,
    Kind,
    Manifest,
    check_path,
    parse_manifest,
    parse_source,
)
from tests.unit.arena.submissions.artefact_builder import (
    CONFIG,
    adapter_directory,
    model_directory,
    safetensors,
    weights,
    with_header,
)

REVISION = "0123456789abcdef0123456789abcdef01234567"
LIMITS = ArtefactLimits()
_REUSE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def _file(path: str, size: int = 10, sha256: str = "ab" * 32) -> dict[str, Any]:
    return {"path": path, "sha256": sha256, "bytes": size}


def _manifest(**changes: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "kind": "model",
        "name": "tiny",
        "source": "upload",
        "files": [_file("config.json"), _file("tokenizer.json"), _file("model.safetensors")],
        "base": None,
        "context": 4_096,
        "dtype": "bfloat16",
        "chat_format": "template",
        **changes,
    }


_BASE: dict[str, Any] = {
    "source": f"hub:Qwen/Qwen3-4B@{REVISION}",
    "files": [_file("config.json"), _file("tokenizer.json"), _file("model.safetensors")],
}
_HERE: dict[str, Any] = {**_BASE, "source": "upload"}
_ADAPTER = [_file("adapter_config.json"), _file("adapter_model.safetensors")]


def test_a_manifest_is_read_as_it_was_written() -> None:
    found = parse_manifest(json.dumps(_manifest()))
    assert parse_manifest(json.dumps(found.to_json())) == found
    assert found.bytes == 30


def test_its_hash_is_the_same_however_it_is_written() -> None:
    value = _manifest()
    turned = {key: value[key] for key in reversed(value)}
    turned["files"] = value["files"][::-1]
    assert parse_manifest(json.dumps(turned, indent=3)).hash == Manifest.of(value).hash


@pytest.mark.parametrize(
    "change",
    [
        {"name": "other"},
        {"context": 8_192},
        {"dtype": "float16"},
        {"chat_format": "chatml"},
        {"source": f"hub:a/b@{REVISION}"},
        {"files": [*_manifest()["files"][:2], _file("model.safetensors", 11)]},
    ],
)
def test_every_field_is_in_its_hash(change: dict[str, Any]) -> None:
    assert Manifest.of(_manifest(**change)).hash != Manifest.of(_manifest()).hash


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"kind": "pickle"},
        {"name": "../x"},
        {"name": ""},
        {"extra": 1},
        {"context": True},
        {"context": 4_096.0},
        {"context": 1 << 20},
        {"dtype": "int4"},
        {"chat_format": "a b"},
        {"base": _BASE},
        {"files": []},
        {"files": _manifest()["files"][:2]},
        {"files": _manifest()["files"][1:]},
        {"files": [*_manifest()["files"], _file("CONFIG.json")]},
        {"files": [*_manifest()["files"], _file("config.json")]},
        {"files": [*_manifest()["files"], _file("MODEL.safetensors")]},
        {"files": [*_manifest()["files"], _file("aB.safetensors"), _file("Ab.safetensors")]},
        {"files": [*_manifest()["files"], _file("a.safetensors", sha256="AB" * 32)]},
        {"files": [*_manifest()["files"], _file("a.safetensors", 9 << 30)]},
        {"files": [*_manifest()["files"], _file("a.safetensors", 0)]},
        {"files": [*_manifest()["files"], _file("generation_config.json", 65 << 20)]},
        {"files": [*_manifest()["files"], *(_file(f"{n}.safetensors") for n in range(64))]},
        {"files": [*_manifest()["files"], *(_file(f"{n}.safetensors", 8 << 30) for n in range(4))]},
        {"kind": "adapter", "files": _ADAPTER},
        {"kind": "adapter", "files": _ADAPTER, "base": _HERE},
        {"kind": "adapter", "files": _manifest()["files"], "base": _BASE},
    ],
)
def test_what_a_manifest_may_not_say(change: dict[str, Any]) -> None:
    with pytest.raises(ArtefactError):
        parse_manifest(json.dumps(_manifest(**change)))


@pytest.mark.parametrize(
    "path",
    [
        "pytorch_model.bin",
        "modeling_x.py",
        "model.safetensors.py",
        "x/model.safetensors",
        "../model.safetensors",
        "..safetensors",
        ".safetensors",
        "a..b.safetensors",
        "a\n.safetensors",
        "model.safetensors\n",
        "a\0.safetensors",
        "/model.safetensors",
        "config.json ",
        "Config.json",
        "ä.safetensors",
        "training_args.bin",
        "x" * 200 + ".safetensors",
    ],
)
def test_names_that_no_file_may_have(path: str) -> None:
    with pytest.raises(ArtefactError):
        check_path(path)


@given(st.text(max_size=40))
def test_no_name_leads_out_of_a_directory(path: str) -> None:
    try:
        check_path(path)
    except ArtefactError:
        return
    assert Path(path).name == path
    assert not path.startswith(".")


@pytest.mark.parametrize(
    "source",
    [
        "hub:a/b@main",
        "hub:a/b",
        f"hub:a@{REVISION}",
        f"hub:a/b/c@{REVISION}",
        f"hub:../b@{REVISION}",
        f"hub:a/..@{REVISION}",
        f"hub:a/b@{REVISION.upper()}",
        f"hub:a/b@{REVISION}\n",
        f"https://x/a/b@{REVISION}",
        "",
    ],
)
def test_a_source_is_pinned_or_refused(source: str) -> None:
    with pytest.raises(ArtefactError):
        parse_source(source)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


@given(st.binary(max_size=200) | st.text(max_size=200) | _JSON.map(json.dumps))
def test_any_text_is_a_manifest_or_refused(text: str | bytes) -> None:
    with pytest.raises(ArtefactError):
        parse_manifest(text)


@given(
    st.fixed_dictionaries({}, optional=dict.fromkeys(_manifest(), _JSON)),
    st.sets(st.sampled_from(sorted(_manifest())), max_size=2),
)
def test_any_change_gives_a_manifest_or_a_refusal(changes: dict[str, Any], gone: set[str]) -> None:
    value = {k: v for k, v in _manifest(**changes).items() if k not in gone}
    try:
        found = parse_manifest(json.dumps(value))
    except ArtefactError:
        return
    assert parse_manifest(json.dumps(found.to_json())).hash == found.hash


def test_a_directory_is_made_a_manifest(tmp_path: Path) -> None:
    found = make_manifest(model_directory(tmp_path / "tiny"))
    assert (found.kind, found.name, found.context, found.dtype) == (
        Kind.MODEL,
        "tiny",
        4_096,
        "bfloat16",
    )
    for file in found.files:
        check_file(tmp_path / "tiny" / file.path, file, LIMITS)


def test_an_adapter_is_for_the_base_that_it_names(tmp_path: Path) -> None:
    base = BaseModelFiles.model_validate(_BASE)
    right = adapter_directory(tmp_path / "a", "Qwen/Qwen3-4B")
    assert make_manifest(right, base=base).kind is Kind.ADAPTER
    other = adapter_directory(tmp_path / "b", "evil/model")
    with pytest.raises(ArtefactError, match="evil/model"):
        make_manifest(other, base=base)


def test_links_and_folders_are_no_files(tmp_path: Path) -> None:
    model = model_directory(tmp_path / "m")
    (model / "generation_config.json").symlink_to("/etc/passwd")
    with pytest.raises(ArtefactError, match="link"):
        make_manifest(model)
    (model / "generation_config.json").unlink()
    (model / "special_tokens_map.json").mkdir()
    with pytest.raises(ArtefactError, match="folder"):
        make_manifest(model)
    (model / "special_tokens_map.json").rmdir()
    os.mkfifo(model / "generation_config.json")
    with pytest.raises(ArtefactError, match="plain file"):
        make_manifest(model)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", {"auto_map": {"AutoModel": "modeling.X"}}),
        ("config.json", {"text_config": {"auto_map": {}}}),
        ("config.json", {"deep": [[{"trust_remote_code": True}]]}),
        ("config.json", {"attn_implementation": "someone/kernel"}),
        ("tokenizer_config.json", {"auto_map": {}}),
        ("generation_config.json", {"custom_generate": "someone/code"}),
    ],
)
def test_a_configuration_that_leads_to_code_is_refused(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    model = model_directory(tmp_path / "m")
    value = {**CONFIG, **change} if name == "config.json" else change
    (model / name).write_text(json.dumps(value))
    with pytest.raises(ArtefactError, match="code"):
        make_manifest(model)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1, "a": 2}', b"\xff", b"[" * 5_000])
def test_json_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    model = model_directory(tmp_path / "m")
    (model / "generation_config.json").write_bytes(content or b" ")
    with pytest.raises(ArtefactError, match=r"generation_config\.json"):
        make_manifest(model)


def test_an_index_names_only_shards_that_are_there(tmp_path: Path) -> None:
    model = model_directory(tmp_path / "m")
    index = model / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "model.safetensors"}}))
    make_manifest(model)
    index.write_text(json.dumps({"weight_map": {"w": "../../secret.safetensors"}}))
    with pytest.raises(ArtefactError, match="secret"):
        make_manifest(model)


def _tensors(*spans: tuple[int, int], dtype: str = "U8", data: int = 8) -> bytes:
    header = {
        f"t{n}": {"dtype": dtype, "shape": [end - begin], "data_offsets": [begin, end]}
        for n, (begin, end) in enumerate(spans)
    }
    return with_header(json.dumps(header).encode(), bytes(data))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 8,
        pickle.dumps({"w": 1}),
        with_header(b"[]", b""),
        with_header(b"{}", b""),
        with_header(b"{}", b"xxxx"),
        (1 << 63).to_bytes(8, "little") + b"{}",
        _tensors((0, 9)),
        _tensors((0, 4), (2, 8)),
        _tensors((0, 4), (5, 8)),
        _tensors((1, 8)),
        _tensors((0, 7)),
        _tensors((0, 8), dtype="PICKLE"),
        _tensors((0, 8), dtype="F32"),
        safetensors({"w": ("U8", [1 << 40, 1 << 40], b"x")}),
        safetensors({"w": ("U8", [-1], b"")}),
        with_header(b'{"w":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}', b"x"),
        with_header(b'{"w":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}}', b"x"),
        with_header(b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}', b"x"),
        with_header(
            b'{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
            b'"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"x",
        ),
        with_header(b'{"__metadata__":{"a":1}}', b""),
    ],
)
def test_what_is_no_safetensors_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ArtefactError):
        check_safetensors(path, path.name, LIMITS)


def test_a_header_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(weights())
    with pytest.raises(ArtefactError, match="header"):
        check_safetensors(path, path.name, ArtefactLimits(header_bytes=16))


@_REUSE
@given(st.data())
def test_a_damaged_file_is_refused_or_still_whole(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever byte changes: no error but ours, and what passes has its tensors in the file."""
    content = bytearray(weights(32))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, 8))
    path = tmp_path / "model.safetensors"
    path.write_bytes(bytes(content[: len(content) - cut]))
    try:
        check_safetensors(path, path.name, LIMITS)
    except ArtefactError:
        return
    length = int.from_bytes(content[:8], "little")
    header = json.loads(bytes(content[8 : 8 + length]))
    ends = [t["data_offsets"][1] for name, t in header.items() if name != "__metadata__"]
    assert max(ends) == path.stat().st_size - 8 - length


def test_another_file_than_named_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"not safetensors at all")
    with pytest.raises(ArtefactError, match="not the file"):
        check_file(path, ArtefactFile(path=path.name, sha256="0" * 64, bytes=22), LIMITS)
