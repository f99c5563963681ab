"""A race for people: its table, in words that fit a terminal."""

from __future__ import annotations

from collections.abc import Sequence

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
    "attribute": "attr.",
    "shop": "shop",
    "budget": "budget",
}


def tables(agents: Sequence[AgentReport]) -> RenderableType:
    """Two tables: who won and why, and how each rule axis fared."""
    return Group(_standings(agents), "", _axes(agents))


def _standings(agents: Sequence[AgentReport]) -> Table:
    buckets = [bucket for bucket in Bucket if bucket in agents[0].by_bucket]
    table = Table(title="Success rates (ASR, strict)", title_justify="left", pad_edge=False)
    table.add_column("#", justify="right")
    table.add_column("agent", overflow="fold")
    for heading in ("ASR", "upstream", *(b.value for b in buckets), "axis A", "time"):
        table.add_column(heading, justify="right")
    table.add_column("failed by", overflow="fold")
    for rank, agent in enumerate(agents, 1):
        table.add_row(
            str(rank) if agent.asr is not None else "-",
            plain(agent.name, 40),
            _rate(agent.asr),
            _rate(agent.asr_upstream),
            *(_rate(agent.by_bucket[bucket].asr) for bucket in buckets),
            _rate(agent.axis_a_share),
            duration(agent.wall_s),
            _failures(agent),
        )
    return table


def _axes(agents: Sequence[AgentReport]) -> Table:
    stated = [axis for axis in _AXIS_TITLES if any(axis in agent.by_axis for agent in agents)]
    table = Table(
        title="Constraints met, by axis",
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("agent", overflow="fold")
    for axis in stated:
        table.add_column(_AXIS_TITLES[axis], justify="right")
    for agent in agents:
        table.add_row(plain(agent.name, 40), *(_rate(agent.by_axis.get(a)) for a in stated))
    return table


def duration(seconds: float) -> str:
    """Seconds for people: 9.8 s, 4 m 05 s, 2 h 03 m."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def _rate(rate: float | None) -> str:
    return "incomplete" if rate is None else f"{100 * rate:.1f} %"


def _failures(agent: AgentReport) -> str:
    parts = [f"{fault.value} {n}" for fault, n in agent.failures.items() if n]
    unexplained = agent.open - agent.failures[Fault.VALIDATOR] - agent.failures[Fault.PLATFORM]
    if unexplained > 0:
        parts.append(f"not run {unexplained}")
    return ", ".join(parts) or "nobody"
