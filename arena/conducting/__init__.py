"""The conductor: what is due by the calendar is done, by one process at a time."""
