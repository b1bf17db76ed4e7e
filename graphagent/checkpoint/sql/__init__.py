"""Checkpoints in SQLite and PostgreSQL: tables, statements, drivers."""
