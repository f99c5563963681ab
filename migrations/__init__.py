"""Alembic migrations of the arena's database."""
