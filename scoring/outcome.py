"""The outcome of a run: strict success and why not, axis by axis, upstream's beside it.

Part of scoring: no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import cast

from scoring import upstream
from scoring.attempt import Attempt, Ending
from scoring.rules import Match, match, stated
from scoring.titles import NoTitles, TitleSimilarity
from scoring.types import Bucket, JsonObject, Problem, Product

RULES_VERSION = "1"
"""Raised with every change of these rules that can change an outcome."""

OUTCOME_SCHEMA = 1


class Reason(StrEnum):
    """Why a run is no strict success; the first that holds, in this order. Stable codes."""

    RUN_FAILED = "run_failed"
    NO_RECOMMENDATION = "no_recommendation"
    SEVERAL_RECOMMENDATIONS = "several_recommendations"
    NOT_TERMINATED = "not_terminated"
    TERMINATED_AS_FAILURE = "terminated_as_failure"
    WRONG_NUMBER_OF_PRODUCTS = "wrong_number_of_products"
    UNKNOWN_PRODUCT = "unknown_product"
    TITLE = "title"
    PRICE = "price"
    SERVICE = "service"
    SKU_OR_ATTRIBUTE = "sku_or_attribute"
    NOT_THE_ANSWER = "not_the_answer"
    """The reward states nothing that could be checked, and the product is another."""
    SHOP = "shop"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Axes:
    """Shares from 0 to 1 over all constraints of the problem; None where it states none.

    A product that does not exist misses all that its reward states. The title is None,
    too, when no similarity was there to judge it.
    """

    title: float | None = None
    price: float | None = None
    service: float | None = None
    sku: float | None = None
    attribute: float | None = None
    sku_and_attribute: float | None = None
    shop: float | None = None
    budget: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """By name, in this order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules say of one run on one problem.

    `reason` is None exactly when `success`. `upstream_scores` are upstream's, by its
    names. `recommended_ids` are the agent's words, bounded and free of NUL and lone
    surrogates.
    """

    bucket: Bucket
    success: bool
    reason: Reason | None
    upstream_success: bool
    axes: Axes
    upstream_scores: Mapping[str, float] = field(default_factory=dict)
    recommended_ids: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        """The JSON object that records hold."""
        return {
            "schema": OUTCOME_SCHEMA,
            "bucket": self.bucket.value,
            "success": self.success,
            "reason": self.reason.value if self.reason else None,
            "upstream_success": self.upstream_success,
            "axes": cast("JsonObject", self.axes.to_json()),
            "upstream_scores": dict(self.upstream_scores),
            "recommended_ids": list(self.recommended_ids),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> Outcome:
        """Read what `to_json` wrote. Raises ValueError on another schema."""
        if value.get("schema") != OUTCOME_SCHEMA:
            raise ValueError(f"outcome schema {value.get('schema')!r}, expected {OUTCOME_SCHEMA}")
        reason = cast("str | None", value["reason"])
        return cls(
            bucket=Bucket(cast("str", value["bucket"])),
            success=cast("bool", value["success"]),
            reason=Reason(reason) if reason else None,
            upstream_success=cast("bool", value["upstream_success"]),
            axes=Axes(**cast("dict[str, float | None]", value["axes"])),
            upstream_scores=cast("dict[str, float]", value["upstream_scores"]),
            recommended_ids=tuple(cast("list[str]", value["recommended_ids"])),
        )


def scoring_pipeline_version(titles: TitleSimilarity) -> str:
    """What decided: these rules and the comparison of titles. Records hold it."""
    return f"rules-{RULES_VERSION}+titles-{titles.name}"


def score(
    problem: Problem,
    attempt: Attempt,
    products: Mapping[str, Product],
    titles: TitleSimilarity | None = None,
) -> Outcome:
    """Judge one run.

    `products` holds those of `attempt.ids` that exist in the catalogue (it may hold
    more). Never raises on what an agent did.
    """
    titles = titles or NoTitles()
    n = len(problem.rewards)
    chosen = [products.get(i) if i else None for i in attempt.ids[:n]]
    chosen += [None] * (n - len(chosen))
    matches = [
        None if product is None else match(problem, reward, product, titles)
        for reward, product in zip(problem.rewards, chosen, strict=True)
    ]
    scores = upstream.rule_scores(problem, attempt.steps, chosen, matches)
    axes = _axes(problem, chosen, matches, titles)
    reason = _reason(problem, attempt, products, matches, axes)
    return Outcome(
        bucket=problem.bucket,
        success=reason is None,
        reason=reason,
        upstream_success=attempt.completed and upstream.succeeded(problem.bucket, scores),
        axes=axes,
        upstream_scores=scores,
        recommended_ids=attempt.ids,
    )


def _reason(
    problem: Problem,
    attempt: Attempt,
    products: Mapping[str, Product],
    matches: Sequence[Match | None],
    axes: Axes,
) -> Reason | None:
    if attempt.ending is not Ending.PROPER:
        return Reason(attempt.ending.value)
    if len(attempt.ids) != len(problem.rewards):
        return Reason.WRONG_NUMBER_OF_PRODUCTS
    there = [m for m in matches if m is not None]
    if len(there) != len(matches):
        return Reason.UNKNOWN_PRODUCT
    for m in there:
        if missed := _missed(m):
            return missed
    if axes.shop is not None and axes.shop < 1:
        return Reason.SHOP
    if axes.budget is not None and axes.budget < 1:
        return Reason.BUDGET
    return None


def _missed(m: Match) -> Reason | None:
    if m.satisfied:
        return None
    if not m.total.of:
        return Reason.NOT_THE_ANSWER
    for tally, reason in (
        (m.title, Reason.TITLE),
        (m.price, Reason.PRICE),
        (m.service, Reason.SERVICE),
    ):
        if not tally.complete:
            return reason
    return Reason.SKU_OR_ATTRIBUTE


def _axes(
    problem: Problem,
    chosen: Sequence[Product | None],
    matches: Sequence[Match | None],
    titles: TitleSimilarity,
) -> Axes:
    judged = not isinstance(titles, NoTitles)
    sums = [[0, 0] for _ in range(6)]
    for reward, match_ in zip(problem.rewards, matches, strict=True):
        m = match_ or stated(reward, titles=judged)
        tallies = (m.title, m.price, m.service, m.sku, m.attribute, m.sku_and_attribute)
        for total, tally in zip(sums, tallies, strict=True):
            total[0] += tally.hit
            total[1] += tally.of
    title, price, service, sku, attribute, both = (h / of if of else None for h, of in sums)
    there = [product for product in chosen if product is not None]
    complete = len(there) == len(problem.rewards)
    shop = budget = None
    if problem.bucket is Bucket.SHOP:
        shop = float(complete and upstream.one_shop(there))
    elif problem.voucher is not None:
        budget = float(complete and upstream.affordable(problem.voucher, there))
    return Axes(
        title=title if judged else None,
        price=price,
        service=service,
        sku=sku,
        attribute=attribute,
        sku_and_attribute=both,
        shop=shop,
        budget=budget,
    )
