"""The database and its schema."""
