"""Where sessions live: in memory, or in a SQLite or PostgreSQL database."""

from runner.sessions.in_memory import InMemorySessions
from runner.sessions.lifetime import Ttl
from runner.sessions.meaning import Embedder, SentenceEmbedder
from runner.sessions.sql import SqlSessions

__all__ = ["InMemorySessions", "SqlSessions", "Ttl", "Embedder", "SentenceEmbedder"]
