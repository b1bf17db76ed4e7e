"""What is remembered about users, over sessions: in memory, or in a SQLite or PostgreSQL database."""

from runner.memory.in_memory import InMemoryMemory
from runner.memory.sql import SqlMemory

__all__ = ["InMemoryMemory", "SqlMemory"]
