"""What a race is run on: agents, problems, and everything that can change a result.

The inputs are written down before the first run. Going on with a race needs the same
ones: results under two sets of inputs cannot stand in one table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import cast

from arena.exceptions import RaceError
from arena.problems.suite import Suite
from arena.runs.agent import AgentFile
from arena.runs.canonical import canonical, ijson
from arena.runs.problems import problem_content, problem_ref
from arena.runs.record import ProblemRef
from sandbox.gateway.interface import GatewayLimits
from sandbox.isolation.interface import SandboxLimits
from scoring.types import Json, JsonObject, Problem

INPUTS_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class RaceInputs:
    """Everything that decides the results of a race."""

    agents: tuple[AgentFile, ...]
    suites: tuple[str, ...]
    """Their names, for people."""
    problems: tuple[Problem, ...]
    """Those drawn from the suites, in order: the denominator."""
    catalog_hash: str
    catalog_engine: str
    scoring_version: str
    model_server: str
    """`stand-in`, or the address of the model server."""
    model: str | None
    sandbox_limits: SandboxLimits
    gateway_limits: GatewayLimits
    judge: JsonObject | None = None
    """What decides a verdict besides the trace; None when nobody judges."""

    def to_json(self) -> JsonObject:
        """The JSON object that is compared, stored and hashed."""
        return {
            "schema": INPUTS_SCHEMA,
            "agents": [
                {"label": a.ref.label, "name": a.ref.name, "source": a.ref.source_hash}
                for a in self.agents
            ],
            "suites": list(self.suites),
            "problems": {
                "count": len(self.problems),
                "content": content_hash(self.problems),
            },
            "catalogue": {"content": self.catalog_hash, "engine": self.catalog_engine},
            "scoring": self.scoring_version,
            "model": {"server": self.model_server, "name": self.model},
            "judge": self.judge,
            "limits": {
                "sandbox": cast("JsonObject", asdict(self.sandbox_limits)),
                "gateway": cast("JsonObject", asdict(self.gateway_limits)),
            },
        }

    def problem_refs(self) -> tuple[ProblemRef, ...]:
        """The problems as records name them."""
        return tuple(problem_ref(problem) for problem in self.problems)


def fingerprint(inputs: JsonObject) -> str:
    """SHA-256 of the canonical inputs, lower-case hex."""
    return hashlib.sha256(canonical(inputs)).hexdigest()


def content_hash(problems: Iterable[Problem]) -> str:
    """SHA-256 over all that is known of the problems, in order, lower-case hex."""
    digest = hashlib.sha256()
    for problem in problems:
        digest.update(problem_content(problem) + b"\n")
    return digest.hexdigest()


def differences(begun: JsonObject, now: JsonObject) -> list[str]:
    """What differs between two inputs, one short phrase each; empty when they agree.

    A suite's name may differ: its problems count.
    """
    # As read back from disk, where a float without a fraction is an integer.
    old, new = cast("JsonObject", ijson(begun)), cast("JsonObject", ijson(now))
    found: list[str] = []
    if old.get("schema") != new["schema"]:
        return [f"the format of its inputs ({old.get('schema')!r}, now {new['schema']!r})"]
    found += _agent_differences(_objects(old["agents"]), _objects(new["agents"]))
    if old["problems"] != new["problems"]:
        counts = [cast("JsonObject", x["problems"])["count"] for x in (old, new)]
        same = counts[0] == counts[1]
        found.append(
            "the problems' content" if same else "the problems ({}, now {})".format(*counts)
        )
    found += _changed(old, new, "catalogue", "content", "the catalogue's content")
    found += _changed(old, new, "catalogue", "engine", "the search engine")
    if old["scoring"] != new["scoring"]:
        found.append(f"the scoring ({old['scoring']}, now {new['scoring']})")
    found += _changed(old, new, "model", "server", "the model server")
    found += _changed(old, new, "model", "name", "the model")
    found += judge_differences(
        cast("JsonObject | None", old.get("judge")), cast("JsonObject | None", new["judge"])
    )
    found += _changed(old, new, "limits", "sandbox", "the sandbox's limits", show=False)
    found += _changed(old, new, "limits", "gateway", "the gateway's limits", show=False)
    return found


def judge_differences(old: JsonObject | None, new: JsonObject | None) -> list[str]:
    """What differs between two judges; None is nobody."""
    if old is None or new is None:
        models = [judge_name(x) for x in (old, new)]
        return [] if old is new else ["the judge ({}, now {})".format(*models)]
    names = ("models", "server", "prompt", "panel", "temperature", "max_tokens", "trace_tokens")
    return [
        f"the judge's {name} ({_short(old.get(name))}, now {_short(new.get(name))})"
        for name in names
        if old.get(name) != new.get(name)
    ]


def judge_name(judge: JsonObject | None) -> str:
    """A judge for people."""
    return (
        "nobody"
        if judge is None
        else ", ".join(str(m) for m in cast("list[Json]", judge["models"]))
    )


def draw(suites: Iterable[Suite], limit: int | None) -> tuple[Problem, ...]:
    """The problems of all suites in order, the first `limit` of each when it is given.

    Raises RaceError when one id stands in two places: one problem would count twice.
    """
    seen: dict[str, str] = {}
    drawn: list[Problem] = []
    for suite in suites:
        for problem in suite.problems[:limit]:
            if problem.problem_id in seen:
                raise RaceError(
                    f"problem {problem.problem_id} of {suite.name} also stands in"
                    f" {seen[problem.problem_id]}",
                    remedy="give each suite once",
                )
            seen[problem.problem_id] = suite.name
            drawn.append(problem)
    if not drawn:
        raise RaceError("there is no problem to race on", remedy="give a suite with problems")
    return tuple(drawn)


def _agent_differences(old: list[JsonObject], new: list[JsonObject]) -> list[str]:
    before = {str(a["label"]): a["source"] for a in old}
    now = {str(a["label"]): a["source"] for a in new}
    changed = [f"agent {x} (its file changed)" for x in before if x in now and before[x] != now[x]]
    gone = [f"agent {x} (not given now)" for x in before if x not in now]
    added = [f"agent {x} (new)" for x in now if x not in before]
    return changed + gone + added


def _changed(
    old: JsonObject, new: JsonObject, group: str, key: str, what: str, *, show: bool = True
) -> list[str]:
    before, now = cast("JsonObject", old[group])[key], cast("JsonObject", new[group])[key]
    if before == now:
        return []
    return [f"{what} ({_short(before)}, now {_short(now)})" if show else what]


def _short(value: Json) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else text[:12] + "…"


def _objects(value: Json) -> list[JsonObject]:
    return cast("list[JsonObject]", value)
