"""Every error a caller can meet: one root, one sentence each, the mend in the message.

Names in messages stand in single quotes, with the nearest or the known ones beside them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


def alternatives(name: str, known: Iterable[str]) -> str:
    """Text that helps with a wrong name: the nearest known one, else all known ones.

    Returns a clause such as `did you mean 'plan'?` or `known: 'a', 'b'`; never an empty text.
    """
    names = [str(item) for item in known]
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    if not names:
        return "none is declared"
    shown = ", ".join(f"'{item}'" for item in names[:12])
    return f"known: {shown}" + (f" and {len(names) - 12} more" if len(names) > 12 else "")


class GraphAgentError(Exception):
    """Root of all errors that graphagent raises."""


# -- definition ---------------------------------------------------------------------------------


class GraphDefinitionError(GraphAgentError):
    """A graph can't be compiled; `problems` holds all that is wrong, by rule and then in the order of declaration."""

    def __init__(self, graph: str, problems: Sequence[object]) -> None:
        self.graph = graph
        self.problems = tuple(problems)
        lines = "".join(f"\n  {problem}" for problem in problems)
        super().__init__(f"graph '{graph}' has {len(problems)} problem(s):{lines}")


class StateError(GraphAgentError):
    """A read or a write of the state that the schema doesn't allow."""

    def __init__(self, message: str, *, field: str | None = None, node: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.node = node


class UndeclaredField(StateError):
    """A write names a field that the state doesn't declare."""


class InvalidUpdate(StateError):
    """A written value doesn't fit the declared type of its field, or a node's result isn't a result at all."""


class WriteConflict(StateError):
    """Two activations of one step wrote a field that has room for one writer."""


class UnsetField(StateError, AttributeError, KeyError):
    """A required field was read before anything was written to it."""

    __str__ = Exception.__str__


class MutatedState(StateError):
    """A node changed the state it was given in place instead of returning an update."""


# -- running ------------------------------------------------------------------------------------


class RunError(GraphAgentError):
    """A run ended otherwise than completed; raised by `RunResult.unwrap()`."""


class NodeError(RunError):
    """A node failed for good; `__cause__` is what it raised."""

    def __init__(self, message: str, *, node: str, activation: str = "", attempts: int = 1) -> None:
        super().__init__(message)
        self.node = node
        self.activation = activation
        self.attempts = attempts


class NodeTimeout(NodeError):
    """An attempt of a node, or a whole step, took longer than its limit."""


class RouteError(RunError):
    """A router, a goto or a Send named something that isn't one of its targets, or the router itself failed."""

    def __init__(self, message: str, *, node: str, label: object = None) -> None:
        super().__init__(message)
        self.node = node
        self.label = label


class ReducerError(RunError):
    """A reducer raised; the results of the step are kept and resume repeats the merge."""

    def __init__(self, message: str, *, field: str, node: str) -> None:
        super().__init__(message)
        self.field = field
        self.node = node


class StepFailed(RunError, ExceptionGroup[Exception]):
    """Several activations of one step failed; `exceptions` has them in graph order."""

    def derive(self, excs: Sequence[Exception]) -> StepFailed:  # type: ignore[override]
        """The group protocol of Python: a part of this group is a StepFailed too."""
        return StepFailed(self.message, excs)


class RunStalled(RunError):
    """Nothing is left to run, yet a join waits or END was not reached."""


class LimitReached(RunError):
    """A limit or a budget ended the run; the state and the checkpoint are in the result."""


class RunInterrupted(RunError):
    """The run waits for answers; `interrupts` lists them."""

    def __init__(self, message: str, interrupts: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.interrupts = tuple(interrupts)


class RunCancelled(RunError):
    """The run was cancelled and nothing of it runs any more."""


# -- misuse of the executor ---------------------------------------------------------------------


class UsageError(GraphAgentError):
    """A call of the executor, or of a node's context, that can't be carried out; nothing was changed."""


class InterruptedRunError(UsageError):
    """New input for a lineage whose newest run has not ended: resume it, or say `abandon=True`."""


class AnswerError(UsageError):
    """Answers that don't fit the pending interrupts; nothing was stored. `pending` lists ids and keys."""

    def __init__(self, message: str, pending: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.pending = tuple(pending)


class EffectUnknown(GraphAgentError):
    """A side effect was begun and its outcome was never recorded: reconcile it before going on."""

    def __init__(self, message: str, *, name: str, key: str) -> None:
        super().__init__(message)
        self.name = name
        self.key = key


# -- checkpoints --------------------------------------------------------------------------------


class CheckpointError(GraphAgentError):
    """Something about stored checkpoints; the run's last good checkpoint is untouched."""


class CheckpointNotFound(CheckpointError):
    """No such lineage or checkpoint in this store."""


class SaveError(CheckpointError):
    """A checkpoint could not be written; the run that needed it has failed."""


class LoadError(CheckpointError):
    """A stored row can't be read back."""


class EncodeError(CheckpointError):
    """A value can't be stored; `path` says where in the state it is."""

    def __init__(self, message: str, *, path: str, field: str | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.field = field


class DecodeError(LoadError):
    """A stored value doesn't fit the type that its field declares now."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__(message)
        self.path = path


class StoreBusy(CheckpointError):
    """All connections to the database were in use for as long as a caller stands in line; nothing was done."""


class LineageBusy(CheckpointError):
    """Another run holds the lineage."""


class LeaseLost(CheckpointError):
    """This run's lease was taken over by another; it may write nothing more."""


class IncompatibleCheckpoint(CheckpointError):
    """The stored run belongs to another version of the graph and can't go on in this one; `changes` says why."""

    def __init__(self, message: str, changes: Sequence[object] = ()) -> None:
        super().__init__(message)
        self.changes = tuple(changes)


# -- models, tools, services ----------------------------------------------------------------------


class ModelError(GraphAgentError):
    """A model call failed. `kind`: `api_error` (the call itself), `stream_error` (after it had begun),
    `context_length`, `rate_limit`, `timeout`, `auth`, `invalid_request` or `output` (an answer that doesn't satisfy its
    schema); `retryable`: another attempt may do."""

    def __init__(self, message: str, *, kind: str = "api_error", retryable: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable


class ServiceError(GraphAgentError):
    """A session, memory or artifact service could not do what it was asked."""


class ServiceBusy(ServiceError):
    """All connections to the database were in use for as long as a caller stands in line; nothing was done."""


class NotFound(ServiceError):
    """What a service was asked for isn't there."""


class AlreadyExists(ServiceError):
    """What a service was to make is there already; nothing was changed."""


class LimitExceeded(ServiceError):
    """A service keeps no more of these; nothing was changed."""


class SkillNotFound(NotFound):
    """There is no such skill."""


class SkillRejected(ServiceError):
    """A skill, or an archive of skills, is not taken; nothing of it was stored."""


class ExecutorUnavailable(ServiceError):
    """Code can't be run here with the protection that was asked for; nothing was run."""


class ProgramFailed(GraphAgentError):
    """A program ended with an exit status other than 0, or a limit ended it. `result`: its `ProgramResult`."""

    def __init__(self, message: str, *, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class PathEscape(ServiceError):
    """A path would leave its workspace; nothing was read or written."""


class SummaryError(GraphAgentError):
    """A summary could not be made; nothing was stored. `spent`: tokens of the calls that were made for it."""

    def __init__(self, message: str, *, spent: Any = None) -> None:
        super().__init__(message)
        self.spent = spent


class AnchorNotFound(NotFound):
    """A session has no event with the id around which it was to be read."""


class SessionNotFound(NotFound):
    """There is no such session."""


class SessionExists(ServiceError):
    """A session with that id is there already."""


class SessionBusy(UsageError):
    """Another run goes on in the session; nothing was stored."""


class AgentError(GraphAgentError):
    """An agent can't be built or found as asked."""


class ToolError(GraphAgentError):
    """A tool can't do what it was asked; the model is told this text."""


class StopAgent(GraphAgentError):
    """A tool, or a callback around it, ends the run; nothing is told to the model."""
