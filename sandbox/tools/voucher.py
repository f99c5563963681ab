"""calculate_voucher: the total after a discount, and whether the budget holds it."""

from __future__ import annotations

import math

from sandbox.tools.arguments import Arguments
from scoring.types import Json

BAD_PRICES = "Invalid product_prices format. Use comma-separated numbers."


def calculate_voucher(arguments: Arguments) -> Json:
    """Apply a voucher to a list of prices.

    It applies when the total reaches `threshold`. `fixed` takes `discount_value` off,
    `percentage` that many per cent, at most `cap` when there is one; any other type
    applies with no discount. The budget is compared before rounding, as upstream does.
    """
    arguments.only("product_prices", "voucher_type", "discount_value", "threshold", "budget", "cap")
    prices = _prices(arguments.required_comma_list("product_prices"))
    if prices is None:
        return {"error": BAD_PRICES}
    voucher_type = arguments.required_text("voucher_type")
    value = arguments.number("discount_value")
    threshold = arguments.number("threshold")
    budget = arguments.number("budget")
    cap = arguments.number("cap", 0)
    total = sum(prices)
    applies = total >= threshold
    discount: int | float = 0.0
    if applies and voucher_type == "fixed":
        discount = value
    elif applies and voucher_type == "percentage":
        discount = total * (value / 100.0)
        if cap > 0:
            discount = min(discount, cap)
    after = total - discount
    return {
        "prices": list(prices),
        "total_before": round(total, 2),
        "discount_amount": round(discount, 2),
        "total_after": round(after, 2),
        "within_budget": after <= budget,
        "voucher_applied": applies,
        "budget": budget,
    }


def _prices(text: str) -> list[float] | None:
    try:
        prices = [float(part.strip()) for part in text.split(",")]
    except ValueError:
        return None
    # "nan" and "inf" are numbers to Python and not to JSON.
    return prices if all(math.isfinite(p) and abs(p) <= 1e15 for p in prices) else None
