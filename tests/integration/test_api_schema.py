"""Whatever is sent, the API answers as its own OpenAPI says, and never with a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from arena.api.app import create_app
from arena.api.settings import ApiSettings
from arena.db.engine import Database
from tests.unit.arena.api.world import Validator, World, served

pytestmark = pytest.mark.database

EXAMPLES = 12
"""For each operation and mode."""
_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@schemathesis.serializer("application/zstd")
def _zstd(context: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) else str(value).encode()


@pytest.fixture
def world(database: Database, tmp_path: Path) -> World:
    generous = ApiSettings(
        data_dir=tmp_path,
        address_rate=10_000,
        address_burst=10_000,
        hotkey_rate=10_000,
        hotkey_burst=10_000,
    )
    return World(database, tmp_path, generous)


def _operations(schema: Any) -> Iterator[Any]:
    for result in schema.get_all_operations():
        yield result.ok()


def _try_all(url: str, document: dict[str, Any], who: Validator) -> int:
    """Every operation with random requests, signed as they go; how many were sent."""
    schema = schemathesis.openapi.from_dict(document)
    sent = 0
    for operation in _operations(schema):
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if mode is GenerationMode.NEGATIVE and not _can_be_wrong(operation):
                continue

            @settings(
                max_examples=EXAMPLES,
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(mode))
            def one(case: Any) -> None:
                nonlocal sent
                sent += 1
                # Headers of its own would replace the signature, and nothing would be tried.
                case.headers = {
                    k: v for k, v in (case.headers or {}).items() if not k.lower().startswith("x-")
                }
                case.call_and_validate(
                    base_url=url, headers=who.headers(), checks=_CHECKS, timeout=30
                )

            try:
                one()
            except Unsatisfiable:
                assert mode is GenerationMode.NEGATIVE  # any bytes are a body of bytes
    return sent


def _can_be_wrong(operation: Any) -> bool:
    """Whether there is anything to get wrong."""
    return bool(list(operation.body) or list(operation.path_parameters) or list(operation.query))


async def test_answers_are_those_of_the_schema(world: World) -> None:
    await world.open()
    app = create_app(world.services())
    async with served(app) as url:
        async with httpx.AsyncClient(base_url=url) as client:
            document = (await client.get("/v1/openapi.json")).json()
        sent = await asyncio.to_thread(_try_all, url, document, world.validators[0])
    assert sent > 200
