"""The rewriter over real HTTP: the stand-in writer's own process, and a server that misbehaves."""

from __future__ import annotations

import json
from typing import cast

import pytest

from corpus_export.rewriting.assembly import skeleton
from corpus_export.rewriting.rewriter import TRIES, Refused, Rewriter, Rewritten
from corpus_export.rewriting.standin import MODULE, REWRITER
from sandbox.exceptions import ModelError
from sandbox.models import ModelClient, ModelRoute, RetryPolicy, discover
from sandbox.standin.process import running_standin
from scoring.types import JsonObject
from tests.unit.corpus_export.rewriting.rows import THOUGHTS, row
from tests.unit.sandbox.provider import Reply, failed, provider, said

SOURCE = "def agent_main(problem):\n    return []\n"
GOOD = json.dumps({"thoughts": THOUGHTS})
INVENTED = json.dumps({"thoughts": [*THOUGHTS[:3], "Product 123456789 would have been better."]})


async def rewritten(*replies: Reply) -> tuple[Rewritten | Refused, list[str]]:
    """What comes of a row when the model answers so, and the last message of each request."""
    async with provider(*replies) as server:
        route = ModelRoute("m", "server", f"{server.url}/v1")
        client = ModelClient([route], retry=RetryPolicy(tries=1))
        try:
            result = await Rewriter(client, "m").rewrite(row(), SOURCE)
        finally:
            await client.close()
        asked = [cast("list[JsonObject]", request["messages"]) for request in server.requests]
        return result, [str(messages[-1]["content"]) for messages in asked]


async def test_the_stand_in_rewrites_a_row_and_nothing_but_thoughts_changes() -> None:
    async with running_standin(load=(MODULE,)) as url:
        client = ModelClient(await discover(url, server="stand-in", standin=True))
        try:
            result = await Rewriter(client, REWRITER).rewrite(row(), SOURCE)
        finally:
            await client.close()
    assert isinstance(result, Rewritten)
    assert (result.model, result.tries) == (REWRITER, 1)
    assert skeleton(result.messages) == skeleton(row())
    assert all(m["reasoning_content"] for m in result.messages if m["role"] == "assistant")


async def test_a_model_that_invents_a_product_is_told_once_and_mends_it() -> None:
    result, asked = await rewritten(said(INVENTED), said(GOOD))
    assert isinstance(result, Rewritten)
    assert result.tries == 2
    assert "thought 4 names an id that no earlier step showed" in asked[1]


@pytest.mark.parametrize(
    "text",
    [INVENTED, "I cannot do that.", '{"thoughts": []}', '{"thoughts": ["cut of', "[]"],
)
async def test_a_model_that_keeps_failing_leaves_the_row_on_axis_b(text: str) -> None:
    result, asked = await rewritten(*[said(text)] * TRIES)
    assert isinstance(result, Refused)
    assert len(asked) == TRIES
    assert result.reasons
    assert text not in " ".join(result.reasons)


async def test_a_server_that_fails_is_an_error_and_no_refusal() -> None:
    with pytest.raises(ModelError):
        await rewritten(failed(500))


async def test_a_row_without_steps_asks_nobody() -> None:
    async with provider() as server:
        client = ModelClient([ModelRoute("m", "server", f"{server.url}/v1")])
        try:
            result = await Rewriter(client, "m").rewrite(row()[:2], SOURCE)
        finally:
            await client.close()
        assert isinstance(result, Refused)
        assert not server.requests
