"""Errors of the sandbox room. Codes are stable: records hold them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = [
    "AgentError",
    "ArenaError",
    "CatalogError",
    "ErrorInfo",
    "Fault",
    "IsolationError",
    "ModelError",
    "ToolError",
]


class CatalogError(ArenaError):
    """A catalogue that cannot be read, or an index that does not fit it."""

    code = "catalog.bad_input"
    fault = Fault.CALLER


class ToolError(ArenaError):
    """A tool call that cannot be answered; the agent reads the message."""

    code = "tool.bad_arguments"
    fault = Fault.AGENT


class ModelError(ArenaError):
    """A model call that failed. The fault says on which side."""

    code = "model.failed"
    fault = Fault.VALIDATOR


class IsolationError(ArenaError):
    """A sandbox that cannot be made or kept. Never the agent's fault."""

    code = "isolation.failed"
    fault = Fault.VALIDATOR


class AgentError(ArenaError):
    """What an agent did wrong inside its sandbox."""

    code = "agent.failed"
    fault = Fault.AGENT
