"""The stand-in server as a process of its own, asked with OpenAI's client."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import httpx
import openai
import pytest

from sandbox.exceptions import ModelError
from sandbox.standin.process import running_standin
from sandbox.standin.registry import NARRATOR, NOVICE, SHOPPER
from sandbox.tools.schemas import TOOL_SCHEMAS


async def test_openais_client_lists_models_and_gets_tool_calls() -> None:
    async with (
        running_standin() as url,
        openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        models = {model.id async for model in client.models.list()}
        assert models == {SHOPPER, NOVICE, NARRATOR}
        completion = await client.chat.completions.create(
            model=SHOPPER,
            messages=[{"role": "user", "content": "Show me a red mug under 90 pesos"}],
            tools=TOOL_SCHEMAS,  # type: ignore[arg-type]
        )
        calls = completion.choices[0].message.tool_calls
        assert calls
        assert calls[0].type == "function"
        assert calls[0].function.name == "find_product"
        assert completion.usage
        assert completion.usage.completion_tokens >= 30


async def test_openais_client_understands_the_errors() -> None:
    async with (
        running_standin() as url,
        openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client,
    ):
        with pytest.raises(openai.NotFoundError, match="not hosted here"):
            await client.chat.completions.create(
                model="gpt-9", messages=[{"role": "user", "content": "x"}]
            )
        with pytest.raises(openai.BadRequestError, match="Streaming"):
            await client.chat.completions.create(
                model=SHOPPER, messages=[{"role": "user", "content": "x"}], stream=True
            )


async def test_it_is_gone_after_the_context() -> None:
    async with running_standin() as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/models")).status_code == 200
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{url}/models")


async def test_a_server_that_cannot_start_says_so() -> None:
    with pytest.raises(ModelError) as raised:
        async with running_standin(load=["no.such.module"]):
            pass
    assert raised.value.code == "model.standin_failed"


async def test_it_dies_with_a_parent_that_is_killed() -> None:
    code = (
        "import asyncio\n"
        "from sandbox.standin.process import running_standin\n"
        "async def main():\n"
        "    async with running_standin() as url:\n"
        "        print(url, flush=True)\n"
        "        await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout
    await parent.stdout.readline()
    (server,) = _children(parent.pid)
    handle = os.pidfd_open(server)
    try:
        gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(handle, gone.set)
        os.kill(parent.pid, signal.SIGKILL)
        await parent.wait()
        await asyncio.wait_for(gone.wait(), 30)
    finally:
        asyncio.get_running_loop().remove_reader(handle)
        os.close(handle)


def _children(pid: int) -> list[int]:
    """The processes that `pid` started."""
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
