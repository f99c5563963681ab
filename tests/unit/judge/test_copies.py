"""Thinking that stood in the prompt before is not the model's."""

from __future__ import annotations

import pytest

from judge.copies import CopyDetector, normal_words
from judge.thinking import read_thinking
from scoring.types import JsonObject
from tests.unit.judge.scenes import REASONED, Scene, call

TITLES = frozenset(["nordvik", "canvas", "rucksack", "tramper", "daypack"])


def copied(planted: str, thought: str, role: str = "user") -> str:
    scene = Scene()
    prompt: list[JsonObject] = [{"role": role, "content": planted}, {"role": "user"}]
    scene.complete({"role": "assistant", "content": f"<think>{thought}</think>"}, prompt=prompt)
    thinking = read_thinking(scene.trace)
    found = CopyDetector(scene.trace, thinking).copies(thinking[0], TITLES)
    return "|".join(thinking[0].text[c.start : c.end] for c in found)


@pytest.mark.parametrize(
    "planted",
    [
        f"Say: {REASONED}",
        REASONED.upper(),
        REASONED.replace(" ", "\n\n* "),
        REASONED.replace("e", "е").replace("o", "ο"),
        "\u200b".join(REASONED),
        f"<think>{REASONED}</think>",
    ],
)
@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_a_planted_thought_is_found_however_it_is_dressed(planted: str, role: str) -> None:
    assert copied(planted, REASONED, role) == REASONED.rstrip(".")


def test_what_the_model_adds_stays_its_own() -> None:
    found = copied("the user wants canvas and it is cheaper than the other", f"Mine. {REASONED}")
    assert found == "the\nuser wants canvas and it is cheaper than".replace("\n", " ")


def test_a_quoted_title_is_no_copy() -> None:
    listed = "48210357 | Nordvik Canvas Rucksack 24 | 389.0\n48210944 | Tramper Daypack 12 | 742.5"
    assert copied(listed, "I like 48210357 Nordvik Canvas Rucksack 24 389.0 and that is it") == ""


def test_what_a_model_wrote_first_is_the_model_s_in_every_later_prompt() -> None:
    scene = Scene()
    scene.complete({"role": "assistant", "content": f"<think>{REASONED}</think>"})
    history = f"Your notes so far:\n{REASONED}"
    prompt: list[JsonObject] = [{"role": "user", "content": history}]
    scene.complete({"role": "assistant", "content": f"<think>Again: {REASONED}</think>"},
                   prompt=prompt)  # fmt: skip
    thinking = read_thinking(scene.trace)
    detector = CopyDetector(scene.trace, thinking)
    assert detector.copies(thinking[1], TITLES) == []


@pytest.mark.parametrize("dress", ["{}", '[{{"note": "{}"}}]'])
def test_a_narration_that_poses_as_a_tool_s_answer_is_found(dress: str) -> None:
    assert copied(dress.format(REASONED), REASONED, "tool") == REASONED.replace(". I", ".|I")


def test_a_description_that_a_tool_really_showed_may_be_quoted() -> None:
    scene = Scene()
    text = "This bag was sewn by hand in a small shop near the old harbour of the town"
    scene.turn("", (call("view_product_information", product_ids="1"), [{"description": text}]))
    scene.turn(f"It says: {text}")
    thinking = read_thinking(scene.trace)
    assert CopyDetector(scene.trace, thinking).copies(thinking[-1], TITLES) == []


def test_a_history_in_one_text_poses_as_nothing_but_its_results() -> None:
    scene = Scene()
    asked = "a fast charging portable power bank of ten thousand units"
    prompt: list[JsonObject] = [{"role": "user", "content": f"{asked}<obs>[]</obs>"}]
    thought = f"Found none. {asked[:44]}: nothing."
    scene.complete({"role": "assistant", "content": f"<think>{thought}</think>"}, prompt=prompt)
    thinking = read_thinking(scene.trace)
    found = CopyDetector(scene.trace, thinking).copies(thinking[0], TITLES)
    assert all(thought[c.start : c.end] in asked for c in found)


def test_words_keep_their_places() -> None:
    text = "Cａnvas\u200b bаg (48210357)"
    words = normal_words(text)
    assert [w for w, _, _ in words] == ["canvas", "bag", "48210357"]
    assert text[words[2][1] : words[2][2]] == "48210357"
