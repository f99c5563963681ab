"""What came of the whole way: one table, one picture, one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

import orjson

from scoring.types import Json, JsonObject
from training.files import read_json_file, write_file, write_json_file
from training.optimising.curves import LINES
from training.optimising.pictures import Panel, draw
from training.path.final_race import RESULT, race_result
from training.path.running import Way
from training.path.steps import TRAINED, Layout

SUMMARY: Final = "summary"
CURVES: Final[Mapping[str, tuple[str, ...]]] = {
    "sft": ("loss", "held_out_loss", "held_out_recommended_digits"),
    "reject": ("loss", "held_out_loss"),
    "teacher": ("loss", "held_out_loss"),
    "kto": ("loss", "kl", "reward_margin"),
    "grpo": ("reward", "success", "kl", "truncation_rate", "error_rate"),
}
"""The curves of each stage that the picture shows."""


def write_summary(way: Way) -> JsonObject:
    """Write `summary.json`, `summary.md` and `summary.svg` of what is there; the object."""
    layout = way.layout
    found: JsonObject = {
        "recipe": cast("JsonObject", way.recipe.model_dump(mode="json")),
        "steps": list(way.steps_done().values()),
        "stages": {name: one for name in TRAINED if (one := _stage(layout, name))},
        "evaluations": {
            name: one for name in ("standin", *TRAINED) if (one := _evaluation(layout, name))
        },
        "race": [_raced(agent) for agent in race_result(layout.out / RESULT)],
    }
    write_json_file(layout.out / f"{SUMMARY}.json", found)
    write_file(layout.out / f"{SUMMARY}.md", markdown(found).encode())
    write_file(layout.out / f"{SUMMARY}.svg", draw(list(_panels(layout))).encode())
    return found


def markdown(found: JsonObject) -> str:
    """The same for people."""
    stages = cast("dict[str, JsonObject]", found["stages"])
    evaluations = cast("dict[str, JsonObject]", found["evaluations"])
    steps = {str(one["step"]): one for one in cast("list[JsonObject]", found["steps"])}
    lines = [
        "| | updates | minutes | strict success on held-out clusters, % | 95 % |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in ("standin", *TRAINED):
        step, stage = steps.get(name, {}), stages.get(name, {})
        rate = cast("JsonObject | None", evaluations.get(name, {}).get("pass_at_1"))
        lines.append(
            f"| {name} | {stage.get('updates', '–')} | {_minutes(step)} | {_percent(rate)} |"
        )
        if step.get("nothing"):
            lines.append(f"| | | | {step['nothing']} | |")
    race = cast("list[JsonObject]", found["race"])
    if race:
        lines += ["", "| race | ASR % | score |", "|---|--:|--:|"]
        lines += [
            f"| {one['name']} | {_hundred(one['asr'])} | {_number(one['score'])} |" for one in race
        ]
    seconds = sum(cast("float", one["seconds"]) for one in steps.values())
    lines += ["", f"{len(steps)} steps took {seconds / 60:.1f} minutes."]
    return "\n".join(lines) + "\n"


def _stage(layout: Layout, name: str) -> JsonObject:
    """What a stage's model says of its training; empty where it made none."""
    path = layout.model(name) / "model" / "training.json"
    if not path.exists():
        return {}
    said = read_json_file(path)
    updates = max((int(line["update"]) for line in _lines(layout, name)), default=0)
    kept: JsonObject = {"updates": updates}
    for key in ("parameters", "learning_rate", "stopped", "peak_memory_mib", "measured"):
        if key in said:
            kept[key] = said[key]
    return kept


def _evaluation(layout: Layout, name: str) -> JsonObject:
    path = layout.evaluation(name) / "report.json"
    if not path.exists():
        return {}
    said = read_json_file(path)
    overall = cast("JsonObject", said["overall"])
    return {
        "problems": overall["problems"],
        "pass_at_1": cast("JsonObject", overall["pass_at"]).get("1"),
        "recommended": overall["recommended"],
        "truncated": overall["truncated"],
        "invented_ids_per_step": overall["invented_ids_per_step"],
        "steps": overall["steps"],
        "comparisons": said.get("comparisons", []),
    }


def _raced(agent: JsonObject) -> JsonObject:
    return {key: agent.get(key) for key in ("name", "problems", "open", "asr", "score", "wall_s")}


def _panels(layout: Layout) -> Iterable[Panel]:
    for stage, names in CURVES.items():
        lines = _lines(layout, stage)
        for name in names:
            points = [(line["update"], line[name]) for line in lines if line.get(name) is not None]
            if points:
                yield Panel(f"{stage}: {name.replace('_', ' ')}", points)


def _lines(layout: Layout, stage: str) -> list[dict[str, float]]:
    path = layout.model(stage) / LINES
    if not path.exists():
        return []
    return [orjson.loads(line) for line in path.read_bytes().splitlines() if line]


def _minutes(step: JsonObject) -> str:
    return f"{cast('float', step['seconds']) / 60:.1f}" if step else "–"


def _percent(rate: JsonObject | None) -> str:
    if rate is None:
        return "– | –"
    ends = f"{_hundred(rate['low'])} to {_hundred(rate['high'])}"
    return f"{_hundred(rate['estimate'])} | {ends}"


def _hundred(value: Json) -> str:
    return f"{100 * value:.1f}" if isinstance(value, int | float) else "–"


def _number(value: Json) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else "–"
