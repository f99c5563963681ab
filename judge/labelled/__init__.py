"""The labelled set: recorded traces over all gates, and the agents and models that made them."""
