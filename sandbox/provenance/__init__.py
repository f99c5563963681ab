"""Provenance: who made the tool calls of a run, the model (axis A) or the agent's code (B).

Pure functions over a trace and a dialogue; no I/O. It may use `sandbox.trace` and
`scoring`, nothing else of the house.
"""

from sandbox.provenance.decision import decide_axis
from sandbox.provenance.dictation import DictationKind
from sandbox.provenance.tags import (
    Block,
    WrittenCall,
    message_text,
    read_blocks,
    read_tool_calls,
)
from sandbox.provenance.verdict import (
    PROVENANCE_VERSION,
    Axis,
    DictatedEmission,
    Provenance,
    Reason,
    UnmatchedDispatch,
)

__all__ = [
    "PROVENANCE_VERSION",
    "Axis",
    "Block",
    "DictatedEmission",
    "DictationKind",
    "Provenance",
    "Reason",
    "UnmatchedDispatch",
    "WrittenCall",
    "decide_axis",
    "message_text",
    "read_blocks",
    "read_tool_calls",
]
