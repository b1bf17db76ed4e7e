"""What is kept of runs: records, the store port, and the stores."""

from graphagent.checkpoint.memory import MemoryCheckpoints
from graphagent.checkpoint.sql.options import PoolOptions
from graphagent.checkpoint.sql_store import SqlCheckpoints
from graphagent.checkpoint.store import CheckpointStore, Lease

__all__ = ["CheckpointStore", "Lease", "MemoryCheckpoints", "PoolOptions", "SqlCheckpoints"]
