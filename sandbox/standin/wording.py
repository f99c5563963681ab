"""What the stand-ins say: thoughts that name the data they weigh.

Titles and values come from sellers and are data: bounded, on one line, without the
characters that tags are made of.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.standin.needs import Need, Task, VoucherTerms
from sandbox.standin.weighing import Weighed


def quoted(text: str, limit: int = 80) -> str:
    """Foreign text, harmless and short, in quotes."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    shown = " ".join(shown.replace("<", "(").replace(">", ")").replace('"', "'").split())
    return f'"{shown[:limit]}{"…" if len(shown) > limit else ""}"'


def wanted(need: Need) -> str:
    """One item in a few words: what, at which price, with which services."""
    parts = [quoted(need.text)]
    if need.price:
        parts.append(f"price {need.price}")
    if need.services:
        parts.append("service " + "+".join(need.services))
    return ", ".join(parts)


def opening(task: Task) -> str:
    """The first thought: what is asked for."""
    items = "; ".join(f"{i}) {wanted(need)}" for i, need in enumerate(task.needs, 1))
    text = f"The shopper wants {len(task.needs)} item(s): {items}."
    if task.one_shop:
        text += " Everything has to come from one shop."
    if task.voucher:
        text += f" {terms(task.voucher)}"
    return f"{text} I search with the words of the item and filter by price and service."


def terms(voucher: VoucherTerms) -> str:
    """A voucher's rules in one sentence."""
    value = f"{voucher.value:g} pesos" if voucher.kind == "fixed" else f"{voucher.value:g} percent"
    cap = f", at most {voucher.cap:g}" if voucher.cap else ""
    where = "one shop" if voucher.same_shop else "any shops"
    return (
        f"Budget {voucher.budget:g}; the voucher takes {value}{cap} off a total of at least "
        f"{voucher.threshold:g} from {where}."
    )


def _facts(weighed: Weighed) -> str:
    candidate = weighed.candidate
    facts = [f"{candidate.product_id} {quoted(candidate.title, 60)} at {candidate.price:g}"]
    if weighed.fits:
        facts.append("has " + ", ".join(quoted(f, 40) for f in weighed.fits[:4]))
    if weighed.broken:
        facts.append("but " + ", ".join(weighed.broken))
    elif weighed.lacks:
        facts.append("does not show " + ", ".join(weighed.lacks[:4]))
    return " ".join(facts)


def seen(need: Need, weighed: Sequence[Weighed], count: int) -> str:
    """What a search found, with the candidates worth a look."""
    if not weighed:
        return f"Nothing found for {wanted(need)}."
    shown = "; ".join(_facts(w) for w in weighed[:3])
    return f"{count} hits for {wanted(need)}: {shown}."


def comparison(need: Need, weighed: Sequence[Weighed]) -> str:
    """Why the first of the candidates and not the second."""
    if not weighed:
        return f"No candidate is left for {wanted(need)}."
    best = weighed[0]
    text = f"For {wanted(need)}: {_facts(best)}"
    rival = next(
        (w for w in weighed[1:] if w.candidate.product_id != best.candidate.product_id), None
    )
    if rival is None:
        return f"{text}; it is the only candidate."
    reason = _reason(best, rival)
    return (
        f"{text}, against {_facts(rival)}. I prefer {best.candidate.product_id} because {reason}."
    )


def _reason(best: Weighed, rival: Weighed) -> str:
    if rival.broken and not best.broken:
        return f"{rival.candidate.product_id} breaks a condition ({', '.join(rival.broken)})"
    more = [fit for fit in best.fits if fit not in rival.fits]
    if more:
        shown = ", ".join(quoted(m, 40) for m in more[:3])
        return f"it has {shown}, which {rival.candidate.product_id} lacks"
    fewer = [word for word in rival.lacks if word not in best.lacks]
    if fewer:
        return f"{rival.candidate.product_id} does not show {', '.join(fewer[:3])}"
    if best.candidate.rank != rival.candidate.rank:
        return "both fit alike and its listing says more or ranks higher"
    return "both fit alike"
