"""What is remembered about users, over sessions: in memory, or in a SQLite or PostgreSQL database; tools and a preload
to use it, and an extraction that keeps it from what was said."""

from runner.memory.checks import Check, all_of, any_of, interval, message_count
from runner.memory.extraction import Extracted, ExtractionError, ExtractionInput, Extractor, Said
from runner.memory.in_memory import InMemoryMemory
from runner.memory.job import MemoryExtraction, Report
from runner.memory.model_extractor import ModelExtractor
from runner.memory.operations import Operation
from runner.memory.policies import UpdatePolicy, append_only, merge_similar, preserve_history
from runner.memory.preload import MemoryPreload
from runner.memory.sql import SqlMemory
from runner.memory.tools import MemoryTools, memory_tools

__all__ = [
    "InMemoryMemory",
    "SqlMemory",
    "MemoryTools",
    "memory_tools",
    "MemoryPreload",
    "MemoryExtraction",
    "Report",
    "Extractor",
    "ExtractionInput",
    "Extracted",
    "ExtractionError",
    "Said",
    "Operation",
    "ModelExtractor",
    "Check",
    "all_of",
    "any_of",
    "interval",
    "message_count",
    "UpdatePolicy",
    "append_only",
    "merge_similar",
    "preserve_history",
]
