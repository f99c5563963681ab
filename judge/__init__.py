"""The reasoning judge."""
