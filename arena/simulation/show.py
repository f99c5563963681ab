"""A simulated season as tables, for people."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Column, Table

from arena.simulation.tally import Month, Outcome

LAST_CHAMPIONS = 8


def tables(outcome: Outcome) -> RenderableType:
    """The months, the payouts, the last champions."""
    return Group(_months(outcome.tally.months), "", _payouts(outcome), "", _champions(outcome))


def findings(outcome: Outcome) -> list[str]:
    """What the season is to prove, one line each."""
    tally = outcome.tally
    open_, held_out = outcome.memoriser("open"), outcome.memoriser("held_out")
    variants = ", ".join(f"{count} {what}" for what, count in sorted(tally.variants.items()))
    return [
        f"memoriser: ASR {_share(open_.asr)} on open, {_share(held_out.asr)} on held-out problems"
        f" ({open_.runs:,} and {held_out.runs:,} runs); paid in {tally.memoriser_paid} races",
        f"copies paid: {len(tally.copies_paid) or 'none'}"
        f" ({sum(m.refused_copies for m in tally.months)} refused at the gate;"
        f" {tally.refused_honest} honest files taken for copies)",
        f"cluster leaks: {len(outcome.leaks) or 'none'}"
        f" ({outcome.problems:,} problems in {outcome.clusters:,} clusters;"
        f" variants: {variants or 'none'})",
        f"draws made again: {tally.draws_verified} hold, {len(tally.draws_wrong) or 'none'} do not",
        f"promotions: {outcome.promotions} in {sum(m.races for m in tally.months)} races;"
        f" champions that left: {tally.left_as_champion}",
    ]


def _months(months: list[Month]) -> Table:
    table = Table(Column("month", no_wrap=True), box=None, pad_edge=False)
    table.caption = "stock: problems that a race may draw; the rest are ASRs"
    names = ("races", "entered", "racers", "titles", "stock", "leaks")
    for name in (*names, "champion", "mem.open", "mem.held"):
        table.add_column(name, justify="right", no_wrap=True)
    for month in months:
        counts = (
            month.races,
            month.submissions,
            month.racers,
            month.promotions,
            month.drawable,
            month.leaks,
        )
        rates = (month.champion, month.memoriser_open, month.memoriser_held_out)
        table.add_row(month.name, *map(str, counts), *(_share(rate.asr) for rate in rates))
    return table


def _payouts(outcome: Outcome) -> Table:
    table = Table("paid to", "miners", "of all weight", box=None, pad_edge=False)
    counts = {kind.value: count for kind, count in outcome.miners.items()}
    for name, share in outcome.payout_shares().items():
        table.add_row(name, str(counts.get(name, "")), f"{share:.4%}")
    return table


def _champions(outcome: Outcome) -> Table:
    table = Table("last champions", "agent", "who", "score", box=None, pad_edge=False)
    for row in outcome.tally.champions[-LAST_CHAMPIONS:]:
        score = row["score"]
        told = f"{score:.3f}" if isinstance(score, float) else "-"
        table.add_row(str(row["race_id"]), str(row["version"]), str(row["kind"]), told)
    return table


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
