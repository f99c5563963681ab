"""What a validator does: claim, race, judge, send, set weights, and outlive faults."""
