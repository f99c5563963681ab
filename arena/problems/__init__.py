"""Suites, the bank and its synthesis."""
