"""Normalise: a record in, a trajectory in the OpenAI tool-calls schema out.

What the trajectory of a run is, and what is left out of it, stands in docs/corpus.md.
"""

from corpus_export.normalise.messages import SYSTEM_TEXT, messages_of
from corpus_export.normalise.record import normalise

__all__ = ["SYSTEM_TEXT", "messages_of", "normalise"]
