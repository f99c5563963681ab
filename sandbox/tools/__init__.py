"""The seven tools of an SN15 agent, over any catalogue.

Pure apart from the catalogue they are given: no network, no clock, no state. The
gateway serves them, `arena conformance` checks them, the corpus recomputes them.
"""

from sandbox.tools.registry import TOOL_NAMES, call_tool
from sandbox.tools.schemas import TOOL_SCHEMAS

__all__ = ["TOOL_NAMES", "TOOL_SCHEMAS", "call_tool"]
