"""The processes people start."""
