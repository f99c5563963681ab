"""Dr. GRPO on rollouts of many turns, through the race's own gateway, tools and scorer."""

from training.dr_grpo.recipe import GrpoRecipe, GrpoSettings

__all__ = ["GrpoRecipe", "GrpoSettings"]
