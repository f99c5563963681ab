"""The one HTTP door of a sandbox: tools, inference, limits, and the recorder."""

from sandbox.gateway.interface import Gateway, GatewayLimits, GatewaySession
from sandbox.gateway.server import HttpGateway

__all__ = ["Gateway", "GatewayLimits", "GatewaySession", "HttpGateway"]
