"""Supervised fine-tuning: the model learns to say what the corpus's assistant says."""

from training.sft.recipe import SftRecipe, SftSettings

__all__ = ["SftRecipe", "SftSettings"]
