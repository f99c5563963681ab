"""The HTTP side: shapes of errors, the bounded queue, clients that go away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.unit.training.serving.speaking import Scripted, renderer
from training.exceptions import PolicyError
from training.serving import app as serving_app
from training.serving.app import create_app
from training.serving.chat import ChatModel
from training.types import Generated, Policy, Sampling

ASKED: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def client(policy: Policy, *, places: int = 8, context: int = 4_000) -> httpx.AsyncClient:
    application = create_app(ChatModel("m", renderer(), policy, context), places=places)
    transport = httpx.ASGITransport(application)
    return httpx.AsyncClient(transport=transport, base_url="http://model")


async def post(asking: httpx.AsyncClient, **more: Any) -> httpx.Response:
    return await asking.post("/v1/chat/completions", json=ASKED | more)


async def test_health_and_models_say_what_is_served() -> None:
    async with client(Scripted()) as asking:
        assert (await asking.get("/health")).json()["status"] == "ok"
        [entry] = (await asking.get("/v1/models")).json()["data"]
    assert entry["id"] == "m"
    assert entry["max_model_len"] == 4_000


async def test_a_completion_comes_back() -> None:
    async with client(Scripted("Hi.")) as asking:
        answer = await post(asking)
    assert answer.status_code == 200
    assert answer.json()["choices"][0]["message"]["content"] == "Hi."


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"stream": True}, 400, "model.no_streaming"),
        ({"model": "other"}, 404, "model_not_found"),
        ({"messages": []}, 400, "model.bad_request"),
        ({"messages": [{"role": "user", "content": "x " * 9_000}]}, 400, "context_length_exceeded"),
        ({"top_k": 3}, 400, "model.unsupported_value"),
        ({"messages": [{"role": "tool", "content": [{"type": "image_url"}]}]}, 400,
         "model.bad_request"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, 400, "model.bad_request"),
    ],
)  # fmt: skip
async def test_refusals_have_the_shape_of_openai(
    more: dict[str, Any], status: int, code: str
) -> None:
    async with client(Scripted("Hi.")) as asking:
        answer = await post(asking, **more)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["code"], error["type"]) == (code, "invalid_request_error")
    assert error["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[1]", b'{"model": "\\u0000"}', b"\xff"])
async def test_a_body_that_is_no_request_is_refused(body: bytes) -> None:
    async with client(Scripted("Hi.")) as asking:
        answer = await asking.post("/v1/chat/completions", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]


async def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_app, "BODY_BYTES", 100)
    async with client(Scripted("Hi.")) as asking:
        answer = await post(asking, messages=[{"role": "user", "content": "x" * 200}])
    assert answer.status_code == 413


async def test_other_paths_have_errors_of_the_same_shape() -> None:
    async with client(Scripted()) as asking:
        for method, path, status in (
            ("GET", "/nothing", 404),
            ("GET", "/v1/chat/completions", 405),
        ):
            answer = await asking.request(method, path)
            assert answer.status_code == status
            assert answer.json()["error"]["message"]


@pytest.mark.parametrize("failure", [PolicyError("the weights are broken"), KeyError("x")])
async def test_a_model_that_fails_is_the_servers_fault(failure: Exception) -> None:
    async with client(Scripted(failure, "Hi.")) as asking:
        answer = await post(asking)
        assert answer.status_code == 500
        assert answer.json()["error"]["type"] == "server_error"
        assert (await post(asking)).status_code == 200


class Held:
    """Answers when it is let to; says when it was asked and when it was given up."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.let = asyncio.Event()
        self.given_up = asyncio.Event()

    async def generate(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling
    ) -> list[Generated]:
        self.asked.set()
        try:
            await self.let.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return await Scripted("Hi.").generate(prompts, sampling)


async def test_a_full_queue_says_when_to_come_again() -> None:
    held = Held()
    async with client(held, places=1) as asking:
        first = asyncio.create_task(post(asking))
        await held.asked.wait()
        refused = await post(asking)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["error"]["code"] == "queue_full"
        held.let.set()
        assert (await first).status_code == 200
        assert (await post(asking)).status_code == 200


async def test_work_is_given_up_when_its_client_goes_away() -> None:
    held = Held()
    application = create_app(ChatModel("m", renderer(), held, 4_000), places=1)
    body = {"type": "http.request", "body": json.dumps(ASKED).encode(), "more_body": False}
    gone = asyncio.Event()
    sent: list[Any] = []

    async def _gone() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    messages = iter([dict(body)])

    async def in_order() -> Any:
        first = next(messages, None)
        return first if first is not None else await _gone()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST",
        "path": "/v1/chat/completions", "raw_path": b"/v1/chat/completions",
        "query_string": b"", "headers": [(b"content-type", b"application/json")],
        "scheme": "http", "server": ("model", 80), "client": ("x", 1), "root_path": "",
    }  # fmt: skip
    answering = asyncio.create_task(application(scope, in_order, send))
    await held.asked.wait()
    gone.set()
    await asyncio.wait_for(held.given_up.wait(), 5)
    await answering
    assert sent[0]["status"] == 499
