"""`arena model serve` as a process: a checkpoint on disk, the OpenAI wire, a clean end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from neurons.cli import app
from sandbox.exceptions import ModelError
from sandbox.models import ChatRequest, ModelClient, discover
from sandbox.models.faults import NOT_SERVED
from sandbox.tools.schemas import TOOL_SCHEMAS
from tests.unit.training.serving.speaking import tokenizer
from training.backbone import random_qwen3, save
from training.recipe import SizeSettings

START_S = 120


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Qwen3 of random weights, as training saves it."""
    directory = tmp_path_factory.mktemp("models") / "tiny-shopper"
    directory.mkdir()
    size = SizeSettings(
        hidden=32, layers=2, heads=4, kv_heads=2, head_width=8, feed_forward=64, context=8_192
    )
    backbone = random_qwen3(size, tokenizer(), seed=1)
    save(backbone.model, backbone.tokenizer, directory, {"base": backbone.base.to_json()})
    return directory


@contextmanager
def serving(directory: Path, *more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The server as a process, and its address once it takes requests."""
    command = [sys.executable, "-m", "neurons", "model", "serve", str(directory), "--port", "0"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [*command, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


async def test_a_checkpoint_is_served_on_a_free_port_until_it_is_told_to_end(
    checkpoint: Path,
) -> None:
    with serving(checkpoint) as (process, url):
        assert url.startswith("http://127.0.0.1:"), process.communicate()
        routes = await discover(url)
        assert [route.model for route in routes] == ["tiny-shopper"]
        absent = replace(routes[0], model="other", upstream_model="absent")
        client = ModelClient([*routes, absent])
        messages: Any = ({"role": "user", "content": "A red shirt"},)
        params: Any = {"tools": list(TOOL_SCHEMAS), "max_tokens": 12, "seed": 7, "temperature": 0.9}
        asked = ChatRequest("tiny-shopper", messages, params)
        said = await asyncio.gather(*(client.complete(asked) for _ in range(3)))
        assert {completion.usage.completion_tokens for completion in said} == {12}
        assert len({str(completion.choices) for completion in said}) == 1
        with pytest.raises(ModelError, match="does not exist") as raised:
            await client.complete(ChatRequest("other", messages, {}), tries=1)
        assert raised.value.code == NOT_SERVED
        # What runs when it is told to end is answered.
        long = ChatRequest("tiny-shopper", messages, params | {"max_tokens": 600})
        last = asyncio.create_task(client.complete(long, tries=1))
        async with httpx.AsyncClient() as health:
            while (await health.get(url.removesuffix("v1") + "health")).json()["requests"] < 1:
                pass
        process.send_signal(signal.SIGTERM)
        assert (await last).usage.completion_tokens > 0
        await client.close()
        assert process.wait(START_S) == 0


def test_a_directory_that_is_no_checkpoint_is_one_line(tmp_path: Path) -> None:
    for directory, said in ((tmp_path, "holds no checkpoint"), (tmp_path / "no", "no directory")):
        result = CliRunner().invoke(app, ["model", "serve", str(directory)])
        assert result.exit_code == 1
        assert result.stderr.startswith("error training.bad_checkpoint:")
        assert said in result.stderr
        assert not result.stdout


def test_a_port_that_is_taken_is_one_line(checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = CliRunner().invoke(app, ["model", "serve", str(checkpoint), "--port", port])
    assert result.exit_code == 1
    assert "choose another --port" in result.stderr
