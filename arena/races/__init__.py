"""Agents times problems: the competition."""
