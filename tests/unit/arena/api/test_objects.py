"""Links allow what they say, once it is signed, and no name becomes a path."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from arena.api.errors import Code, Refusal
from arena.api.links import KEY_FILE, Links, open_links
from arena.api.objects import LocalStore, S3Store, Upload, check_key, open_store
from arena.api.settings import ApiSettings
from arena.api.sigv4 import Credentials, presign
from arena.exceptions import SettingsError
from tests.unit.arena.api.world import SOURCE, World


def test_the_published_example_of_a_presigned_url() -> None:
    """From the Amazon S3 API reference, "Authenticating Requests: Using Query Parameters"."""
    key = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    url = presign(
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        key,
        now=datetime(2013, 5, 24, tzinfo=UTC),
        ttl_s=86_400,
    )
    signature = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
    assert parse_qs(urlsplit(url).query)["X-Amz-Signature"] == [signature]
    assert "wJalrXUtnFEMI" not in repr(key)


def test_an_s3_link_signs_length_and_type() -> None:
    store = S3Store("https://s3.example", "bucket", Credentials("id", "secret"))
    now = datetime(2026, 1, 1, tzinfo=UTC)

    def signed(length: int) -> dict[str, list[str]]:
        upload = Upload("a/b.json", length, "application/json")
        url = store.upload_url(upload, base_url="", now=now, ttl_s=60)
        assert url.startswith("https://s3.example/bucket/a/b.json?")
        return parse_qs(urlsplit(url).query)

    assert signed(1)["X-Amz-SignedHeaders"] == ["content-length;content-type;host"]
    assert signed(1)["X-Amz-Signature"] != signed(2)["X-Amz-Signature"]


@given(st.text(max_size=60))
def test_no_key_leads_out_of_the_directory(text: str) -> None:
    try:
        check_key(text)
    except Refusal:
        return
    root = Path("/objects")
    assert (root / text).resolve().is_relative_to(root)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/.b",
        ".",
        "a\0b",
        "a/b/",
        "ä",
        "a b",
        "-/..",
    ],
)
def test_keys_that_are_none(key: str) -> None:
    with pytest.raises(Refusal):
        check_key(key)


def test_a_link_holds_for_what_it_says_until_it_expires() -> None:
    links = Links(b"k" * 32)
    signature = links.sign("GET a", 100)
    links.check("GET a", 100, signature, 100.0)
    for what, expires, now, key in (
        ("GET b", 100, 0.0, b"k"),
        ("GET a", 101, 0.0, b"k"),
        ("GET a", 100, 100.1, b"k"),
        ("GET a", 100, 0.0, b"l"),
    ):
        with pytest.raises(Refusal) as refused:
            Links(key * 32).check(what, expires, signature, now)
        assert refused.value.error_code is Code.INVALID_LINK


def test_the_key_of_links_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    settings = ApiSettings(data_dir=tmp_path / "api")
    first, again = open_links(settings), open_links(settings)
    again.check("x", 1, first.sign("x", 1), 0.0)
    path = tmp_path / "api" / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == [KEY_FILE]
    path.write_bytes(b"short")
    with pytest.raises(SettingsError, match="damaged"):
        open_links(settings)


def test_settings_decide_where_objects_lie(tmp_path: Path) -> None:
    links = Links(b"k" * 32)
    assert isinstance(open_store(ApiSettings(data_dir=tmp_path), links), LocalStore)
    s3 = {"s3_endpoint": "https://s3.example", "s3_access_key": "id"}
    with pytest.raises(SettingsError):
        open_store(ApiSettings(data_dir=tmp_path, **s3), links)  # type: ignore[arg-type]
    with_key = ApiSettings(data_dir=tmp_path, s3_secret_key=SecretStr("k"), **s3)  # type: ignore[arg-type]
    assert isinstance(open_store(with_key, links), S3Store)
    short = ApiSettings(data_dir=tmp_path, link_secret=SecretStr("short"))
    with pytest.raises(SettingsError):
        open_links(short)


async def _presigned(world: World, client: httpx.AsyncClient, length: int) -> str:
    evaluation, alice = await world.open(), world.validators[0]
    claimed = await client.post("/v1/validator/work/claim", headers=alice.headers())
    said = {
        "content_length": length,
        "eval_run_id": claimed.json()["eval_run_id"],
        "problem_id": evaluation.problems[0],
    }
    answer = await client.post("/v1/validator/uploads/presign", json=said, headers=alice.headers())
    return str(answer.json()["upload_url"])


def _files(world: World) -> list[Path]:
    return [p for p in (world.directory / "objects").rglob("*") if p.is_file()]


@pytest.mark.database
async def test_an_upload_has_exactly_the_length_of_its_link(world: World) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b"x" * 1_000

    async with world.client() as client:
        url = await _presigned(world, client, 5)
        for body, status in ((b"123456", 413), (b"1234", 400), (b"", 400), (endless(), 413)):
            assert (await client.put(url, content=body)).status_code == status
            assert _files(world) == []
        assert (await client.put(url, content=b"12345")).status_code == 204
    assert [p.read_bytes() for p in _files(world)] == [b"12345"]


@pytest.mark.database
async def test_a_link_that_was_changed_opens_nothing(world: World) -> None:
    async with world.client() as client:
        url = await _presigned(world, client, 5)
        other = str(uuid4())
        run = url.split("evaluation-runs/")[1][:36]
        for changed in (
            url.replace("length=5", "length=9"),
            url.replace(run, other),
            url.replace("/evaluation-runs/", "/evaluation-runs/../../"),
            url.replace("evaluation-runs/", "evaluation-runs%2F..%2F..%2F"),
            url.replace("json", "html"),
            url.replace("signature=", "signature=x"),
        ):
            answer = await client.put(changed, content=b"12345")
            assert answer.status_code in (403, 404), changed
        world.clock.ahead = timedelta(seconds=world.settings.link_ttl + 5)
        late = await client.put(url, content=b"12345")
        assert late.json()["error_code"] == "INVALID_LINK"
    assert _files(world) == []


@pytest.mark.database
async def test_code_is_given_while_the_run_is_held(world: World) -> None:
    await world.open()
    alice = world.validators[0]
    async with world.client() as client:
        claimed = (await client.post("/v1/validator/work/claim", headers=alice.headers())).json()
        url = claimed["code_download_url"]
        assert (await client.get(url)).content == SOURCE
        other = url.replace(claimed["eval_run_id"], str(UUID(int=1)))
        assert (await client.get(other)).status_code == 403
        world.clock.ahead = timedelta(seconds=world.settings.lease + 1)
        assert (await client.get(url)).json()["error_code"] == "LEASE_EXPIRED"


@pytest.mark.database
async def test_bodies_are_counted_whatever_they_declare(world: World) -> None:
    world.settings = world.settings.model_copy(update={"body_bytes": 1_000, "body_seconds": 0.2})

    async def large() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b" " * 500

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    json = {"content-type": "application/json"}
    async with world.client() as client:
        for body in (b" " * 1_001, large()):
            answer = await client.post("/v1/auth/challenge", content=body, headers=json)
            assert (answer.status_code, answer.json()["error_code"]) == (413, "FILE_TOO_LARGE")
        answer = await client.post("/v1/auth/challenge", content=slow(), headers=json)
        assert (answer.status_code, answer.json()["error_code"]) == (408, "BODY_TOO_SLOW")
