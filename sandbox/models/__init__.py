"""The one model client."""
