"""Rollouts: a model works on problems through the race's gateway, tools and strict scorer."""
