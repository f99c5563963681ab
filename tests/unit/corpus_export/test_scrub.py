from __future__ import annotations

import json
from collections import Counter
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_export.scrub import Scrubber
from scoring.types import JsonObject

SECRETS = {
    "key": [
        "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF",
        "sk-ant-api03-Zm9vYmFyYmF6cXV4-1234567890",
        "cpk_0a1b2c3d4e5f.6789abcdef0123456789abcdef012345.abcdefghijklmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "hf_QxZkWvTnRbLmPdSfGhJkLzXcVbNm",
    ],
    "email": ["jane.doe+x@example.co.uk"],
    "phone": ["+63 917 123 4567", "0917-123-4567"],
    "card": ["4111 1111 1111 1111", "5555-5555-5555-4444"],
    "bank_account": ["GB82 WEST 1234 5698 7654 32"],
    "ip_address": ["8.8.8.8"],
    "address": ["5Eq12Y7cxWJPPyLeQz1qeWWJTZiUi8sLQdLFVXg683QPUwV3"],
    "token": ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822c"],
}
EVERY = [(kind, text) for kind, texts in SECRETS.items() for text in texts]

HARMLESS = [
    "Product 4591283746 at 1,299.00 pesos beats 3928471625 at 1,050; shop 20055512 has both.",
    "Sony WH-1000XM4, 2.4GHz, 10000mAh, 1920x1080, model SM-A155F/DSN, version 1.2.3",
    "Breakroom/Lobby/Events/Church/School/Hall/HotelBlack1PCS",
    "from 192.168.1.10 on the local network, 4111 1111 1111 1112 is no card",
    "red-cotton-shirt-with-long-sleeves-and-a-very-long-descriptive-slug",
    "The budget is 2000-3500, and the voucher takes 15 % off, at most 300.",
]


def assistant(text: str) -> JsonObject:
    return {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": []}


def call(arguments: str) -> JsonObject:
    function: JsonObject = {"name": "find_product", "arguments": arguments}
    called: JsonObject = {"id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [called]}


def tool(content: str, call_id: str = "call_1") -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.mark.parametrize(("kind", "secret"), EVERY)
def test_a_secret_is_taken_out_and_counted_by_kind(kind: str, secret: str) -> None:
    clean, found = Scrubber().scrub([assistant(f"I was told {secret} , so I go on.")])
    assert found == Counter({kind: 1})
    assert clean[0]["content"] == f"I was told [removed {kind}] , so I go on."


@pytest.mark.parametrize("text", HARMLESS)
def test_talk_of_products_and_prices_stays_as_it_is(text: str) -> None:
    clean, found = Scrubber().scrub([assistant(text)])
    assert not found
    assert clean[0]["content"] == text


def test_a_value_found_in_a_thought_goes_from_arguments_and_results_too() -> None:
    secret = "hunter2-abc"
    arguments = json.dumps({"q": f"mug {secret}"})
    messages = [
        assistant(f"password: {secret}"),
        call(arguments),
        tool(json.dumps([{"product_id": "1", "title": f"{secret} mug"}])),
    ]
    clean, found = Scrubber().scrub(messages)
    assert found == Counter({"password": 1})
    assert secret not in json.dumps(clean)
    called = cast("list[dict[str, dict[str, str]]]", clean[1]["tool_calls"])
    assert json.loads(called[0]["function"]["arguments"]) == {"q": "mug [removed password]"}


def test_a_secret_that_json_escapes_goes_from_inside_of_json_text() -> None:
    secret = 'pa"ss\\wörd-9'
    assert Scrubber([secret]).scrub([call(json.dumps({"q": secret}))])[1] == Counter(literal=1)
    clean, _ = Scrubber([secret]).scrub([call(json.dumps({"q": secret}))])
    called = cast("list[dict[str, dict[str, str]]]", clean[0]["tool_calls"])
    assert json.loads(called[0]["function"]["arguments"]) == {"q": "[removed literal]"}


def test_what_the_catalogue_says_is_not_searched_unless_the_agent_changed_it() -> None:
    result = json.dumps([{"product_id": "7", "title": "call 0917-123-4567"}])
    assert not Scrubber().scrub([tool(result)])[1]
    assert Scrubber().scrub([tool(result)], foreign=frozenset({"call_1"}))[1] == {"phone": 1}


def test_ids_of_products_and_shops_are_never_taken_for_phone_numbers() -> None:
    result = json.dumps([{"product_id": "09171234567", "shop_id": "0445120006"}])
    messages = [tool(result), assistant("I take 09171234567 of shop 0445120006.")]
    assert Scrubber().scrub(messages) == (messages, Counter())


def test_the_operators_own_secrets_go_in_any_shape_of_text() -> None:
    clean, found = Scrubber(["my own words"]).scrub([assistant("it says my own words here")])
    assert found == {"literal": 1}
    assert clean[0]["content"] == "it says [removed literal] here"


@given(
    st.lists(st.sampled_from([secret for _, secret in EVERY]), min_size=1, max_size=4),
    st.text(max_size=40),
    st.sampled_from([" ", "\n", '"', "(", ", "]),
)
def test_no_secret_survives_whatever_stands_around_it(
    secrets: list[str], around: str, gap: str
) -> None:
    text = gap.join(f"{around} {secret} " for secret in secrets)
    clean, _ = Scrubber().scrub([assistant(text), call(json.dumps({"q": text}))])
    said = json.dumps(clean, ensure_ascii=False)
    assert not [secret for secret in secrets if secret in said]


@given(st.text(max_size=300))
def test_scrubbing_twice_changes_nothing_more(text: str) -> None:
    once, _ = Scrubber().scrub([assistant(text)])
    again, found = Scrubber().scrub(once)
    assert (again, found) == (once, Counter())


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("mail a@b.com, not xa@b.com", ["a@b.com"]),
        ("password: hunter22 or password: hunter22xyz, again hunter22", ["hunter22"]),
    ],
)
def test_a_secret_that_is_part_of_another_goes_where_it_stands_alone(
    text: str, secrets: list[str]
) -> None:
    clean, found = Scrubber().scrub([assistant(text)])
    said = str(clean[0]["content"])
    assert not [secret for secret in secrets if secret in said]
    assert found.total() == 2


def test_a_secret_that_only_ever_is_part_of_another_is_no_find_of_its_own() -> None:
    text = "password: hunter22-and-more"
    clean, found = Scrubber(["hunter22"]).scrub([assistant(text)])
    assert found == Counter(password=1)
    assert clean[0]["content"] == "password: [removed password]"


@pytest.mark.parametrize(
    "unit", ["eyJ", "://", "//a:", "sk-", "T3BlbkFJ", ":_authToken= ", "a.eyJ"]
)
def test_a_text_made_to_be_slow_is_searched_in_linear_time(unit: str) -> None:
    """Quadratic patterns of `detect-secrets` would take minutes for it."""
    text = unit * (400_000 // len(unit))
    clean, _ = Scrubber().scrub([assistant(text)])
    assert clean


@pytest.mark.parametrize(
    "secret",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        "//registry.npmjs.org/:_authToken=npm_abcdefghijklmnopqrstuvwxyz0123456789",
        "xsk-abcdefghij0123456789T3BlbkFJabcdefghij0123456789",
    ],
)
def test_what_is_searched_in_linear_time_is_found_as_before(secret: str) -> None:
    clean, found = Scrubber().scrub([assistant(f"use {secret} here")])
    assert found["key"] == 1
    assert secret.rpartition("=")[2] not in str(clean[0]["content"])


@pytest.mark.parametrize("secret", ["4111 1111 1111 1111", "+63 917 123 4567", "0917-123-4567"])
@pytest.mark.parametrize("beside", ["{} ", "1 {}", "0 {}", "{}   8.8.8.8", "{}\n0 {}"])
def test_a_number_beside_another_is_found(secret: str, beside: str) -> None:
    clean, _ = Scrubber().scrub([assistant(beside.format(secret, secret))])
    assert secret not in str(clean[0]["content"])
