"""The package name that SN15 agents import from. Standard library and requests only."""
