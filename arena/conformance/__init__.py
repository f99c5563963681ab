"""`arena conformance`: prove agreement with shared test vectors.

An operator whose validator passes knows that it agrees with everyone else's.
"""

from arena.conformance.cli import app

__all__ = ["app"]
