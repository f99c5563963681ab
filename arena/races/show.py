"""A race for people: its tables, and who won. Fits a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from arena.races.report import AgentReport
from sandbox.terminal import plain
from scoring.exceptions import Fault
from scoring.types import Bucket

_AXIS_TITLES = {
    "title": "title",
    "price": "price",
    "service": "service",
    "sku": "SKU",
    "attribute": "attribute",
    "shop": "shop",
    "budget": "budget",
}


def tables(agents: Sequence[AgentReport]) -> RenderableType:
    """The standings, how each bucket went when a judge spoke, and how each rule axis fared."""
    stated = [axis for axis in _AXIS_TITLES if any(axis in agent.by_axis for agent in agents)]
    judged = any(_before_a_judge(agent) for agent in agents)
    what = "Score, and success rates in %" if judged else "Success rates in %"
    shown: list[RenderableType] = [f"[bold]{what} (ASR, strict)[/]", _standings(agents, judged), ""]
    if judged:
        shown += ["[bold]By bucket: ASR in % and score[/]", _buckets(agents), ""]
    if stated:
        shown += ["[bold]Constraints met in %, by axis[/]", _axes(agents, stated), ""]
    return Group(*shown)


def verdict(agents: Sequence[AgentReport]) -> str:
    """Who won and why, in a plain sentence or two. `agents` are in the order of their rank.

    Holds names that come from files: escape it where it is shown.
    """
    problems = f"{agents[0].problems} problem{'' if agents[0].problems == 1 else 's'}"
    if unfinished := [agent for agent in agents if agent.asr is None]:
        return "There is no winner yet: " + ", ".join(
            f"{agent.name} has {agent.open} of {problems} open" for agent in unfinished
        )
    if any(map(_before_a_judge, agents)) and any(agent.unjudged for agent in agents):
        return "There is no winner yet: " + ", ".join(
            f"{agent.name} has {agent.unjudged} of {problems} unjudged"
            for agent in agents
            if agent.unjudged
        )
    best = agents[0]
    if not best.asr:
        return f"Nobody solved any of {problems}."
    worth = "" if best.score is None else f", a score of {best.score:.3f}"
    solved = f"solved {_percent(best.asr)} of {problems}{worth}"
    level = [agent.name for agent in agents if _standing(agent) == _standing(best)]
    if len(level) > 1:
        return f"{', '.join(level)} are level: each {solved}."
    if len(agents) == 1:
        return f"{best.name} {solved}."
    return f"{best.name} won: it {solved}. {_why(*agents[:2])}"


def _before_a_judge(agent: AgentReport) -> bool:
    """Whether a judge was asked about any of its runs."""
    return any(run is not None and run.judgement is not None for run in agent.results)


def _standing(agent: AgentReport) -> tuple[float | None, float | None, float | None]:
    return agent.score, agent.asr, agent.asr_upstream


def _why(best: AgentReport, second: AgentReport) -> str:
    """What sets the winner apart from the next: its reasoning, or where the gap is largest."""
    if second.asr is not None and best.asr is not None and second.asr >= best.asr:
        many = "as many" if second.asr == best.asr else "more"
        if best.score != second.score:
            ours, theirs = best.coefficient or 0.0, second.coefficient or 0.0
            return (
                f"Next is {second.name}; it solved {many}, and its reasoning is worth less"
                f" (coefficient {theirs:.3f} against {ours:.3f})."
            )
        return f"{second.name} solved as many; the upstream rule tells them apart."
    buckets = _largest_gap(
        {f"{b.value} problems": report.asr for b, report in best.by_bucket.items()},
        {f"{b.value} problems": report.asr for b, report in second.by_bucket.items()},
    )
    axes = _largest_gap(
        {f"{_AXIS_TITLES[a]} constraints": best.by_axis.get(a) for a in _AXIS_TITLES},
        {f"{_AXIS_TITLES[a]} constraints": second.by_axis.get(a) for a in _AXIS_TITLES},
    )
    return f"Next is {second.name}; it lost most {' and '.join(filter(None, (buckets, axes)))}."


def _largest_gap(best: dict[str, float | None], second: dict[str, float | None]) -> str:
    gaps = [
        (ours - theirs, f"on {what} ({_percent(theirs)} against {_percent(ours)})")
        for what, ours in best.items()
        if ours is not None and (theirs := second.get(what)) is not None and ours > theirs
    ]
    return max(gaps)[1] if gaps else ""


def _standings(agents: Sequence[AgentReport], judged: bool) -> Table:
    buckets = [] if judged else _drawn(agents)
    table = _table()
    table.add_column("#", justify="right")
    table.add_column("agent", overflow="fold")
    rates = ("score", "ASR", "coef.", "SN15") if judged else ("ASR",)
    for heading in (*rates, "upstream", *(b.value for b in buckets), "axis A", "time"):
        table.add_column(heading, justify="right")
    table.add_column("failures", overflow="fold")
    for rank, agent in enumerate(agents, 1):
        worths = (agent.coefficient, agent.score_sn15) if judged else ()
        table.add_row(
            str(rank) if (agent.score if judged else agent.asr) is not None else "-",
            plain(agent.name, 40),
            *((_score(agent.score, agent),) if judged else ()),
            _rate(agent.asr),
            *(_score(worth, agent) for worth in worths),
            _rate(agent.asr_upstream),
            *(_rate(agent.by_bucket[bucket].asr) for bucket in buckets),
            _rate(agent.axis_a_share),
            duration(agent.wall_s),
            _failures(agent),
        )
    return table


def _buckets(agents: Sequence[AgentReport]) -> Table:
    buckets = _drawn(agents)
    table = _table()
    table.add_column("agent", overflow="fold")
    for bucket in buckets:
        table.add_column(bucket.value, justify="right")
        table.add_column("score", justify="right")
    for agent in agents:
        found = [agent.by_bucket[bucket] for bucket in buckets]
        cells = [(_rate(one.asr), _score(one.score, agent)) for one in found]
        table.add_row(plain(agent.name, 40), *(cell for pair in cells for cell in pair))
    return table


def _drawn(agents: Sequence[AgentReport]) -> list[Bucket]:
    return [bucket for bucket in Bucket if bucket in agents[0].by_bucket]


def _axes(agents: Sequence[AgentReport], stated: Sequence[str]) -> Table:
    table = _table()
    table.add_column("agent", overflow="fold")
    for axis in stated:
        table.add_column(_AXIS_TITLES[axis], justify="right")
    for agent in agents:
        table.add_row(plain(agent.name, 40), *(_rate(agent.by_axis.get(a)) for a in stated))
    return table


def _table() -> Table:
    """Without vertical rules: ten columns stand side by side in 80 characters."""
    return Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False, pad_edge=False)


def duration(seconds: float) -> str:
    """Seconds for people: 9.8 s, 4 m 05 s, 2 h 03 m."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def _rate(rate: float | None) -> str:
    return "open" if rate is None else f"{100 * rate:.1f}"


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _score(score: float | None, agent: AgentReport) -> str:
    """Not known is said as what it is, never as a zero."""
    if score is not None:
        return f"{score:.3f}"
    return "open" if agent.open else "unjudged"


def _failures(agent: AgentReport) -> str:
    parts = [f"{fault.value} {n}" for fault, n in agent.failures.items() if n]
    unexplained = agent.open - agent.failures[Fault.VALIDATOR] - agent.failures[Fault.PLATFORM]
    if unexplained > 0:
        parts.append(f"not run {unexplained}")
    if agent.judging_failed:
        parts.append("judge")
    return ", ".join(parts) or "none"
