"""recommend_product and terminate: how an agent ends its work.

That a recommendation is made once is a rule of the run, so the gateway holds it.
"""

from __future__ import annotations

from sandbox.exceptions import ToolError
from sandbox.tools.arguments import Arguments, split_ids
from scoring.types import Json


def recommend_product(arguments: Arguments) -> Json:
    """Confirm a recommendation; the ids are repeated as they were given."""
    arguments.only("product_ids")
    text = arguments.required_comma_list("product_ids")
    if not split_ids(arguments.tool, text):
        raise ToolError(f"{arguments.tool}: product_ids is empty")
    return f"Having recommended the products to the user: {text}."


def terminate(arguments: Arguments) -> Json:
    """Confirm the end of the dialogue; `status` is `success` when absent."""
    arguments.only("status")
    status = arguments.text("status")
    status = "success" if status is None else status
    if status not in ("success", "failure"):
        raise ToolError(f"{arguments.tool}: status must be success or failure")
    return f"The interaction has been completed with status: {status}"
