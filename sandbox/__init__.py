"""The world an agent lives in."""
