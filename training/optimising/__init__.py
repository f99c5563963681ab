"""The loop that every stage trains in: updates, checkpoints, curves."""
