"""Corpus in, model out."""
