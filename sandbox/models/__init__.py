"""The one model client of the house: gateway, judge, rewording and training ask through it.

client = ModelClient(ModelSettings().routes())
answer = await client.complete(ChatRequest("name", ({"role": "user", "content": "…"},)))
"""

from sandbox.models.client import Completion, ModelClient, RetryPolicy
from sandbox.models.discovery import discover
from sandbox.models.request import ChatRequest
from sandbox.models.routes import ModelRoute, Wire
from sandbox.models.settings import ModelSettings

__all__ = [
    "ChatRequest",
    "Completion",
    "ModelClient",
    "ModelRoute",
    "ModelSettings",
    "RetryPolicy",
    "Wire",
    "discover",
]
