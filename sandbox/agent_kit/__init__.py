"""Mounted inside a sandbox: what an agent may import. Standard library and requests only."""
