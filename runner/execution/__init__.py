"""Where programs run: as this machine's user, or behind namespaces."""

from runner.execution.local import LocalExecutor
from runner.execution.sandbox import SandboxExecutor

__all__ = ["LocalExecutor", "SandboxExecutor"]
