"""KTO: a model learns from whole trajectories which of them succeeded and which did not."""

from training.kto.recipe import KtoRecipe, KtoSettings

__all__ = ["KtoRecipe", "KtoSettings"]
