"""Agents that ship with the arena."""
