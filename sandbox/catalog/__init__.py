"""Documents, index and search."""
