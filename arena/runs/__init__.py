"""One problem, one agent, one unsigned record."""
