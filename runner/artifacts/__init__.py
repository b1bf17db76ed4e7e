"""Files with versions: in memory, in a database, on a disk, or in an object store."""

from runner.artifacts.files import FileArtifacts, FsspecArtifacts
from runner.artifacts.in_memory import InMemoryArtifacts
from runner.artifacts.sql import SqlArtifacts

__all__ = ["FileArtifacts", "FsspecArtifacts", "InMemoryArtifacts", "SqlArtifacts"]
