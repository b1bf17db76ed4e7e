"""Where programs run: as this machine's user, or behind namespaces; and what a model may run there."""

from runner.execution.blocks import BlocksRan, CodeBlock, code_blocks, only_block, run_blocks
from runner.execution.exec_arguments import ExecRules
from runner.execution.fenced import FencedReplies
from runner.execution.local import LocalExecutor
from runner.execution.policy import CommandPolicy
from runner.execution.sandbox import SandboxExecutor
from runner.execution.tools import WorkspaceTools

__all__ = [
    "LocalExecutor",
    "SandboxExecutor",
    "WorkspaceTools",
    "ExecRules",
    "CommandPolicy",
    "FencedReplies",
    "CodeBlock",
    "BlocksRan",
    "code_blocks",
    "only_block",
    "run_blocks",
]
