"""The whole way: a generated world, a corpus raced on it, every stage, and a race at the end."""
