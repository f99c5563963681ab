"""Agents that cheat, for the demonstration: what the arena does about each is in its docstring."""
