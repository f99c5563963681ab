"""A simulated season: real bank, clusters, draw, races and weights; only the runs are drawn."""
