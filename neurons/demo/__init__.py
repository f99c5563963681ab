"""`arena demo`: a day of the arena on a generated world, offline."""
