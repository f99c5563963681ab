"""Axis B into axis A: a model writes the reasoning between calls that really happened."""
