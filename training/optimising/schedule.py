"""The learning rate of each update. Pure."""

from __future__ import annotations

import math

from training.recipe import OptimiserSettings, Schedule


def rate_at(update: int, total: int, settings: OptimiserSettings) -> float:
    """The learning rate of an update, the first being 0, of `total`.

    It rises in equal steps over the warm-up, of which the last update has the whole rate, and
    then falls to its floor, which the last update of all nearly reaches.
    """
    warm = math.ceil(settings.warm_up * total)
    if update < warm:
        return settings.learning_rate * (update + 1) / warm
    if settings.schedule is Schedule.CONSTANT:
        return settings.learning_rate
    done = (update - warm) / max(1, total - warm)
    if settings.schedule is Schedule.LINEAR:
        left = 1.0 - done
    else:
        left = 0.5 * (1.0 + math.cos(math.pi * done))
    return settings.learning_rate * (settings.floor + (1.0 - settings.floor) * left)
