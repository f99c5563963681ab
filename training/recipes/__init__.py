"""Recipes, a YAML file each; see `training.recipe`."""
