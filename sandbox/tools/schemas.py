"""The seven tools as data: OpenAI function schemas, for agents and the corpus.

Kept as JSON beside this module, so that what runs inside a sandbox can be given the
file itself.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import cast

from scoring.types import JsonObject

TOOL_SCHEMAS: tuple[JsonObject, ...] = tuple(
    cast(
        "list[JsonObject]",
        json.loads(files("sandbox.tools").joinpath("schemas.json").read_text(encoding="utf-8")),
    )
)
"""Values of the chat completion parameter `tools`."""
