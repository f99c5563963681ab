"""The queue of evaluations that validators claim, and the history of what became of them."""
