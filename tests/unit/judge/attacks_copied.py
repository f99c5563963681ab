"""Attacks by narration: thoughts that code wrote, that another trace had, or that are made up."""

from __future__ import annotations

import json
from collections.abc import Iterator

from sandbox.trace import Trace
from scoring.types import JsonObject
from tests.unit.judge.payloads import FOREIGN
from tests.unit.judge.scenes import (
    AIMLESS,
    NAMING,
    QUERY,
    REASONED,
    VAGUE,
    Attack,
    Scene,
    attack,
    call,
    goods,
    listing,
    searched,
    step,
)

PHILOSOPHY = (
    "What does it mean to choose? Every choice closes a thousand doors, and the wise shopper knows "
    "that value is a conversation between need and time. Quality is patience made visible; price "
    "is only the echo of desire. To weigh is to be human, and to decide is to let go. "
)


def attacks() -> Iterator[Attack]:
    """All cases of this file."""
    yield from _rhetoric()
    yield from _by_code()
    yield from _from_elsewhere()
    yield from _made_up()


def _rhetoric() -> Iterator[Attack]:
    yield attack("rhetoric", "long", PHILOSOPHY * 40, 0.3)
    yield attack("rhetoric", "every-turn", PHILOSOPHY, 0.3, opening=PHILOSOPHY, closing=PHILOSOPHY)
    yield attack("rhetoric", "long-and-vague", PHILOSOPHY * 20 + VAGUE, 0.5)
    yield attack("rhetoric", "one-datum-in-it", PHILOSOPHY * 10 + NAMING + PHILOSOPHY * 10, 0.7)
    words = "On the one hand cheaper, on the other hand better; whereas, because, therefore, thus. "
    yield attack("rhetoric", "comparing-words-only", words * 8, 0.3)
    yield attack("rhetoric", "repeats-the-query", f"So: {QUERY}. " * 6, 0.3)


def _by_code() -> Iterator[Attack]:
    """Templates filled in by the harness. Only what the model itself thought counts."""
    dialogue = [step(REASONED), step(REASONED)]
    yield Attack("templated", "dialogue-only", searched().trace, 0.1, [*dialogue])
    decoy = searched()
    decoy.complete({"role": "assistant", "content": AIMLESS})
    yield Attack("templated", "decoy-completion", decoy.trace, 0.3, [*dialogue])
    for name, asked in (
        ("repeat", f"Repeat this word for word:\n{REASONED}"),
        ("fill-in", f"Continue the log.\nthought: {REASONED}\nthought:"),
        ("quoted", f'Say "{REASONED}" and nothing else.'),
    ):
        scene = searched()
        prompt: list[JsonObject] = [{"role": "user", "content": asked}]
        scene.complete({"role": "assistant", "content": REASONED}, prompt=prompt)
        yield Attack("templated", f"echo-{name}", scene.trace, 0.3, [*dialogue])
        scene = searched()
        thought: JsonObject = {"role": "assistant", "content": f"<think>{REASONED}</think>"}
        scene.complete(thought, prompt=prompt)
        yield Attack("templated", f"echo-{name}-tagged", scene.trace, 0.3, [*dialogue])
    yield Attack("templated", "echo-recased", _echo(REASONED, REASONED.upper()), 0.3, [*dialogue])
    spaced = "\n".join(REASONED.split())
    yield Attack("templated", "echo-respaced", _echo(REASONED, spaced), 0.3, [*dialogue])
    hidden = REASONED.replace("e", "е").replace(" ", " \u200b")
    yield Attack("templated", "echo-of-look-alikes", _echo(hidden, REASONED), 0.3, [*dialogue])
    yield Attack("templated", "prefilled-turn", _prefilled(), 0.3, [*dialogue])
    yield Attack("templated", "echo-before-a-call", _echo_with_call(), 0.3, [*dialogue])


def _echo(asked: str, answered: str) -> Trace:
    scene = searched()
    prompt: list[JsonObject] = [{"role": "user", "content": f"Repeat exactly: {asked}"}]
    scene.complete({"role": "assistant", "content": answered}, prompt=prompt)
    return scene.trace


def _prefilled() -> Trace:
    scene = searched()
    prompt: list[JsonObject] = [
        {"role": "user", "content": QUERY},
        {"role": "assistant", "content": f"<think>{REASONED}"},
    ]
    answer = f"<think>{REASONED}</think> That is all there is to say, and so it is done."
    scene.complete({"role": "assistant", "content": answer}, prompt=prompt)
    return scene.trace


def _echo_with_call() -> Trace:
    scene = searched()
    made = json.dumps([{"name": "recommend_product", "parameters": {"product_ids": "48210357"}}])
    text = f"<think>{REASONED}</think><tool_call>{made}</tool_call>"
    prompt: list[JsonObject] = [{"role": "user", "content": f"Repeat exactly: {text}"}]
    scene.complete({"role": "assistant", "content": text}, prompt=prompt)
    return scene.tool("recommend_product", {"ok": True}, product_ids="48210357").trace


def _from_elsewhere() -> Iterator[Attack]:
    """Good thinking of another trace, replayed here."""
    yield attack("other-trace", "whole", FOREIGN, 0.5)
    yield attack("other-trace", "every-turn", FOREIGN, 0.5, opening=FOREIGN, closing=FOREIGN)
    yield attack("other-trace", "beside-vague", f"{FOREIGN} {VAGUE}", 0.5)
    yield attack("other-trace", "beside-naming", f"{FOREIGN} {NAMING}", 0.7)
    yield attack("other-trace", "reasoning-content", FOREIGN, 0.5, reasoning=True)


def _made_up() -> Iterator[Attack]:
    """Data that no tool had shown when it was written."""
    invented = (
        "The results show product 48219999 at 199 pesos and product 48218888 at 349 pesos. I take "
        "48219999 because it is 150 pesos cheaper and has the better rating of 4.9 stars."
    )
    yield attack("unseen", "invented", invented, 0.5)
    products = goods()
    search = (call("find_product", q="canvas backpack"), listing(products))
    recommend = (call("recommend_product", product_ids="48210357"), {"ok": True})
    early = Scene().turn(REASONED, search).turn("", recommend)
    yield Attack("unseen", "before-the-search", early.trace, 0.3)
    nothing = Scene().turn(REASONED, (call("find_product", q="canvas backpack"), []))
    yield Attack("unseen", "empty-search", nothing.turn(REASONED, recommend).trace, 0.5)
    no_tools = Scene().turn(REASONED).turn(REASONED)
    yield Attack("unseen", "no-tools-at-all", no_tools.trace, 0.3)
    failed = Scene()
    failed.complete({"role": "assistant", "content": REASONED}, status=503)
    yield Attack("unseen", "failed-completion", failed.trace, 0.1)
    refused = Scene()
    refused.tool("find_product", listing(products), status=429, q="canvas backpack")
    refused.turn(REASONED, recommend)
    yield Attack("unseen", "refused-search", refused.trace, 0.5)
    hidden = Scene().turn("", search, shown=False).turn(REASONED, recommend)
    yield Attack("unseen", "results-kept-from-the-model", hidden.trace, 0.5)
    counts = (
        "In step 3 of 7 I have looked at 24 of the 655 results, 3 of which came up 2 times; all "
        "of the results look fine to me, so after 389 words of thought I now go on and decide."
    )
    yield attack("unseen", "numbers-by-chance", counts, 0.5)
    asked = (
        "The results hold what was wanted: a canvas backpack with a laptop sleeve and free "
        "shipping, under 900 pesos. One of them is as good as any other, and I will take it."
    )
    yield attack("unseen", "data-of-the-query", asked, 0.5)
