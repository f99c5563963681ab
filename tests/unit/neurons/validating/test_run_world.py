"""A miner's credential goes to the server it belongs to, and nowhere else."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from arena.client.validator import InferenceCredential
from neurons.validating.run_world import lend
from sandbox.models import ModelRoute

OWN = SecretStr("the validator's own key")
LENT = SecretStr("the miner's")
CHUTES = ModelRoute("m", "chutes", base_url="https://llm.chutes.ai/v1", api_key=OWN)
ROUTER = ModelRoute("m", "openrouter.ai", base_url="https://openrouter.ai/api/v1", api_key=OWN)
LOCAL = ModelRoute("s", "stand-in", base_url="http://127.0.0.1:9", standin=True)


@pytest.mark.parametrize(
    ("provider", "base_url", "which"),
    [
        ("chutes", "https://llm.chutes.ai/v1", CHUTES),
        ("chutes", None, CHUTES),
        ("CHUTES", "https://LLM.chutes.ai", CHUTES),
        ("openrouter", "https://openrouter.ai/api/v1", ROUTER),
        ("openrouter", None, ROUTER),
    ],
)
def test_only_the_provider_itself_is_given_the_credential(
    provider: str, base_url: str | None, which: ModelRoute
) -> None:
    routes, lent = lend((CHUTES, ROUTER, LOCAL), InferenceCredential(provider, LENT, base_url))
    assert lent
    keys = {route.server: route.api_key for route in routes}
    assert keys == {
        route.server: LENT if route is which else route.api_key for route in (CHUTES, ROUTER, LOCAL)
    }


@pytest.mark.parametrize(
    ("provider", "base_url"),
    [
        ("", None),
        ("evil", "https://evil.test/v1"),
        ("chutes", "https://evil.test/v1"),
        ("chutes", "https://chutes.ai.evil.test"),
        ("ai", "http://[broken"),
        ("stand-in", None),
        ("stand-in", "http://127.0.0.1:9"),
    ],
)
def test_a_server_that_a_miner_names_is_never_asked(provider: str, base_url: str | None) -> None:
    table = (CHUTES, ROUTER, LOCAL)
    assert lend(table, InferenceCredential(provider, LENT, base_url)) == (table, False)


def test_a_credential_is_printed_nowhere() -> None:
    credential = InferenceCredential("chutes", LENT, None)
    routes, _ = lend((CHUTES,), credential)
    assert "miner's" not in f"{credential!r}{routes!r}{credential}"
