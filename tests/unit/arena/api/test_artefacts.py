"""Files of artefacts come in parts, are hashed here, and cannot be changed afterwards."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from arena.api.artefact_store import MOST_UPLOADS, ArtefactStore
from arena.api.errors import Code, Refusal
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from arena.submissions.artefact_files import make_manifest
from arena.submissions.artefacts import ArtefactFile, Manifest
from tests.unit.arena.api.bucket import bucket_app
from tests.unit.arena.api.world import Validator, World, served
from tests.unit.arena.submissions.artefact_builder import model_directory

pytestmark = pytest.mark.database

PART = 64 << 10


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    settings = ApiSettings(
        data_dir=tmp_path, artefact_part_bytes=PART, artefact_quota_bytes=1 << 20
    )
    return World(database, tmp_path, settings)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return model_directory(tmp_path / "model", size=150_000)


async def _ask(client: httpx.AsyncClient, who: Validator, manifest: Manifest) -> httpx.Response:
    return await client.post("/v1/miner/artefacts", json=manifest.to_json(), headers=who.headers())


async def _finalise(client: httpx.AsyncClient, who: Validator, sha256: str) -> httpx.Response:
    return await client.post(f"/v1/miner/artefacts/files/{sha256}/finalise", headers=who.headers())


async def _send(client: httpx.AsyncClient, state: dict[str, Any], directory: Path) -> None:
    for file in state["missing"]:
        content = (directory / file["path"]).read_bytes()
        for part in file["parts"]:
            await _put(client, state, part, content[part["number"] * PART :][: part["bytes"]])


async def _put(
    client: httpx.AsyncClient, state: dict[str, Any], part: dict[str, Any], content: bytes
) -> None:
    headers = {"content-type": state["content_type"]}
    answer = await client.put(part["url"], content=content, headers=headers)
    assert answer.is_success, answer.text


async def _store(client: httpx.AsyncClient, who: Validator, directory: Path) -> Manifest:
    manifest = make_manifest(directory)
    state = (await _ask(client, who, manifest)).json()
    await _send(client, state, directory)
    for file in state["missing"]:
        answer = await _finalise(client, who, file["sha256"])
        assert answer.status_code == 200, answer.text
    return manifest


async def test_what_a_miner_sends_a_validator_fetches(world: World, model: Path) -> None:
    async with world.client() as client:
        manifest = await _store(client, world.miner, model)
        again = (await _ask(client, world.miner, manifest)).json()
        assert again["complete"]
        assert again["missing"] == []
        assert again["artefact"] == manifest.hash
        for file in manifest.files:
            url = f"/v1/validator/artefacts/files/{file.sha256}"
            told = (await client.get(url, headers=world.validators[0].headers())).json()
            content = b"".join([(await client.get(p["url"])).content for p in told["parts"]])
            assert content == (model / file.path).read_bytes()
            refused = await client.get(url, headers=world.miner.headers())
            assert refused.status_code == 403


async def test_a_file_goes_on_where_it_was(world: World, model: Path) -> None:
    manifest = make_manifest(model)
    async with world.client() as client:
        state = (await _ask(client, world.miner, manifest)).json()
        large = next(f for f in state["missing"] if f["path"] == "model.safetensors")
        assert [part["number"] for part in large["parts"]] == [0, 1, 2]
        content = (model / "model.safetensors").read_bytes()
        await _put(client, state, large["parts"][1], content[PART : 2 * PART])
        early = await _finalise(client, world.miner, large["sha256"])
        assert (early.status_code, early.json()["error_code"]) == (409, "ARTEFACT_INCOMPLETE")
        state = (await _ask(client, world.miner, manifest)).json()
        large = next(f for f in state["missing"] if f["path"] == "model.safetensors")
        assert [part["number"] for part in large["parts"]] == [0, 2]
        await _send(client, state, model)
        assert (await _finalise(client, world.miner, large["sha256"])).status_code == 200


async def test_a_file_that_anybody_stored_is_not_sent_again(world: World, model: Path) -> None:
    async with world.client() as client:
        manifest = await _store(client, world.miner, model)
        assert (await _ask(client, world.validators[0], manifest)).json()["complete"]


async def test_other_bytes_than_were_named_are_refused_and_forgotten(
    world: World, model: Path
) -> None:
    manifest = make_manifest(model)
    async with world.client() as client:
        state = (await _ask(client, world.miner, manifest)).json()
        file = next(f for f in state["missing"] if f["path"] == "config.json")
        await _put(client, state, file["parts"][0], b"x" * file["bytes"])
        refused = await _finalise(client, world.miner, file["sha256"])
        assert (refused.status_code, refused.json()["error_code"]) == (400, "INVALID_FILE")
    assert await world.rows("artefact_files") == 0
    assert [p for p in (world.directory / "objects").rglob("*") if p.is_file()] == []


async def test_in_a_bucket_other_bytes_are_forgotten_and_the_right_ones_then_stored(
    world: World, model: Path
) -> None:
    objects: dict[str, bytes] = {}
    manifest = make_manifest(model)
    async with served(bucket_app(objects)) as bucket, httpx.AsyncClient() as sender:
        keys = {"s3_endpoint": bucket, "s3_access_key": "id", "s3_secret_key": SecretStr("key")}
        world.settings = world.settings.model_copy(update=keys)
        async with world.client() as client:
            state = (await _ask(client, world.miner, manifest)).json()
            large = next(f for f in state["missing"] if f["path"] == "model.safetensors")
            for part in large["parts"]:
                await _put(sender, state, part, b"x" * part["bytes"])
            refused = await _finalise(client, world.miner, large["sha256"])
            assert (refused.status_code, refused.json()["error_code"]) == (400, "INVALID_FILE")
            assert objects == {}
            state = (await _ask(client, world.miner, manifest)).json()
            again = next(f for f in state["missing"] if f["path"] == "model.safetensors")
            assert [part["number"] for part in again["parts"]] == [0, 1, 2]
            await _send(sender, state, model)
            assert (await _finalise(client, world.miner, large["sha256"])).status_code == 200
            url = f"/v1/validator/artefacts/files/{large['sha256']}"
            told = (await client.get(url, headers=world.validators[0].headers())).json()
            content = b"".join([(await sender.get(p["url"])).content for p in told["parts"]])
    assert content == (model / "model.safetensors").read_bytes()


async def test_a_link_that_is_still_good_changes_nothing_that_is_kept(
    world: World, model: Path
) -> None:
    manifest = make_manifest(model)
    async with world.client() as client:
        state = (await _ask(client, world.miner, manifest)).json()
        file = next(f for f in state["missing"] if f["path"] == "config.json")
        content = (model / "config.json").read_bytes()
        await _put(client, state, file["parts"][0], content)
        assert (await _finalise(client, world.miner, file["sha256"])).status_code == 200
        await _put(client, state, file["parts"][0], b"x" * file["bytes"])
        url = f"/v1/validator/artefacts/files/{file['sha256']}"
        told = (await client.get(url, headers=world.validators[0].headers())).json()
        assert (await client.get(told["parts"][0]["url"])).content == content


async def test_finalising_at_once_stores_a_file_once(world: World, model: Path) -> None:
    manifest = make_manifest(model)
    async with world.client() as client:
        state = (await _ask(client, world.miner, manifest)).json()
        await _send(client, state, model)
        sha256 = next(f["sha256"] for f in state["missing"] if f["path"] == "model.safetensors")
        answers = await asyncio.gather(*(_finalise(client, world.miner, sha256) for _ in range(4)))
    assert {answer.status_code for answer in answers} == {200}
    assert await world.rows("artefact_files") == 1


async def test_nobody_finalises_what_another_hotkey_sends(world: World, model: Path) -> None:
    manifest = make_manifest(model)
    async with world.client() as client:
        state = (await _ask(client, world.miner, manifest)).json()
        await _send(client, state, model)
        answer = await _finalise(client, world.validators[0], state["missing"][0]["sha256"])
    assert (answer.status_code, answer.json()["error_code"]) == (404, "ARTIFACT_NOT_FOUND")


async def test_a_hotkey_stores_no_more_than_its_quota(world: World, tmp_path: Path) -> None:
    async with world.client() as client:
        await _store(client, world.miner, model_directory(tmp_path / "a", size=600_000))
        second = make_manifest(model_directory(tmp_path / "b", size=600_000, seed=1))
        refused = await _ask(client, world.miner, second)
        assert (refused.status_code, refused.json()["error_code"]) == (409, "ARTEFACT_QUOTA")
        assert (await _ask(client, world.validators[0], second)).status_code == 200


async def test_what_is_on_its_way_takes_of_the_quota_for_a_day(
    world: World, tmp_path: Path
) -> None:
    first = make_manifest(model_directory(tmp_path / "a", size=600_000))
    second = make_manifest(model_directory(tmp_path / "b", size=600_000, seed=1))
    async with world.client() as client:
        state = (await _ask(client, world.miner, first)).json()
        await _put(
            client,
            state,
            state["missing"][0]["parts"][0],
            b"x" * state["missing"][0]["parts"][0]["bytes"],
        )
        assert (await _ask(client, world.miner, second)).status_code == 409
    store = ArtefactStore(world.services())
    later = world.clock() + timedelta(days=1, seconds=1)
    await store.begin(world.miner.hotkey, second.files, later)
    assert [p for p in (world.directory / "objects").rglob("*") if p.is_file()] == []


async def test_whoever_asks_next_sweeps_what_everybody_left(world: World, tmp_path: Path) -> None:
    many = [_tiny(number) for number in range(60)]
    store = ArtefactStore(world.services())
    miner, validator = world.miner.hotkey, world.validators[0].hotkey
    begun = world.clock()
    objects = world.directory / "objects"
    for upload in await store.begin(miner, many, begun):
        part = objects / "artefact-uploads" / str(upload.upload_id) / "0"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x")
    (fresh,) = await store.begin(validator, [_tiny(99)], begun + timedelta(hours=23))
    part = objects / "artefact-uploads" / str(fresh.upload_id) / "0"
    part.parent.mkdir()
    part.write_bytes(b"x")
    await store.begin(validator, [_tiny(99)], begun + timedelta(hours=25))
    assert [p for p in objects.rglob("*") if p.is_file()] == [part]


async def test_a_hotkey_begins_no_more_files_than_a_thousand_a_day(world: World) -> None:
    store = ArtefactStore(world.services())
    await store.begin(world.miner.hotkey, map(_tiny, range(MOST_UPLOADS)), world.clock())
    with pytest.raises(Refusal) as refused:
        await store.begin(world.miner.hotkey, [_tiny(MOST_UPLOADS)], world.clock())
    assert refused.value.code == Code.ARTEFACT_QUOTA
    assert await world.rows("artefact_uploads") == MOST_UPLOADS


def _tiny(number: int) -> ArtefactFile:
    digest = hashlib.sha256(str(number).encode()).hexdigest()
    return ArtefactFile(path="config.json", sha256=digest, bytes=1)


async def test_a_manifest_that_is_none_stores_nothing(world: World, model: Path) -> None:
    async with world.client() as client:
        answer = await client.post(
            "/v1/miner/artefacts", content=b"{", headers=world.miner.headers()
        )
        assert (answer.status_code, answer.json()["error_code"]) == (400, "ARTEFACT_REFUSED")
        stranger = await _ask(client, world.stranger, make_manifest(model))
        assert stranger.status_code == 403
    assert await world.rows("artefact_uploads") == 0


async def test_an_unknown_file_is_not_found(world: World) -> None:
    sha256 = hashlib.sha256(b"nothing").hexdigest()
    async with world.client() as client:
        answer = await client.get(
            f"/v1/validator/artefacts/files/{sha256}", headers=world.validators[0].headers()
        )
        assert answer.status_code == 404
        odd = await client.get(
            "/v1/validator/artefacts/files/..%2f..", headers=world.validators[0].headers()
        )
        assert odd.status_code in (404, 422)
