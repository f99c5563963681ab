"""A model provider on loopback that misbehaves on request, speaking the real wires.

Frontier models cannot run in a test, so this stands in for them behind the same HTTP:
the OpenAI chat wire and Anthropic's Messages wire, told apart by the path.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from scoring.types import JsonObject


@dataclass(frozen=True, slots=True)
class Reply:
    """What the provider does with one request."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    """Announce the whole body, send half of it, close."""
    drop: bool = False
    """Close without a word."""
    wait: Callable[[], Awaitable[object]] | None = None
    """Await this before answering."""


@dataclass(slots=True)
class Provider:
    """The running provider: what it was asked, and what it will answer."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    """Used up one a request; then `default`."""
    default: Reply = field(default_factory=lambda: said("hello"))
    special: dict[str, Reply] = field(default_factory=dict)
    """Replies to prompts that end with one of these texts, before all others."""
    requests: list[JsonObject] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)


def said(text: str | None, **message: object) -> Reply:
    """A chat completion with this text."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": "stop",
    }
    return completion([choice])


def completion(choices: object, **extras: object) -> Reply:
    """A chat completion with these choices."""
    body = {
        "id": "cmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "upstream",
        "choices": choices,
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **extras,
    }
    return Reply(body=json.dumps(body).encode())


def failed(status: int, message: str = "no", **headers: str) -> Reply:
    """An error in the shape of both wires."""
    body = {"type": "error", "error": {"message": message, "type": "x"}}
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Reply(status, json.dumps(body).encode(), named)


@asynccontextmanager
async def provider(*replies: Reply) -> AsyncIterator[Provider]:
    """Run a provider on a free port of loopback."""
    running = Provider("", list(replies))
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while await _answer(running, reader, writer):
                pass
        except (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.transport.abort()
            tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield running
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(
    running: Provider, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    running.paths.append(head[0].split(" ")[1])
    running.headers.append(headers)
    running.requests.append(json.loads(body) if body else {})
    running.arrived.set()
    ending = str(_last_text(running.requests[-1]))
    special = [reply for text, reply in running.special.items() if ending.endswith(text)]
    reply = (special or running.replies or [running.default])[0]
    if not special and running.replies:
        running.replies.pop(0)
    if reply.wait is not None:
        await reply.wait()
    if reply.drop:
        return False
    extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers)
    writer.write(
        f"HTTP/1.1 {reply.status} X\r\ncontent-type: application/json\r\n{extra}"
        f"content-length: {len(reply.body)}\r\n\r\n".encode()
    )
    writer.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
    await writer.drain()
    return not reply.cut


def _last_text(request: JsonObject) -> object:
    messages = request.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return last.get("content") if isinstance(last, dict) else ""
