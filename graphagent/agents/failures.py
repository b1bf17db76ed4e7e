"""Failures as events tell them, and back."""

from __future__ import annotations

from graphagent.engine.result import RunResult
from graphagent.errors import CheckpointError, EffectUnknown, LimitReached, ModelError, NodeError, StopAgent
from graphagent.ledger import ErrorInfo


def error_info(result: RunResult) -> ErrorInfo:
    """Why a run did not complete, as an event says it."""
    if result.status == "cancelled":
        return ErrorInfo(type="cancelled", message="the run was cancelled")
    if result.error is None:
        return ErrorInfo(type="flow_error", message=f"{result.status}: {result.reason}", code=result.status)
    return error_of(result.error)


def error_of(error: Exception) -> ErrorInfo:
    """An error as an event says it."""
    if isinstance(error, StopAgent):
        return ErrorInfo(type="stop_agent_error", message=str(error))
    if isinstance(error, ModelError):
        kind = "stream_error" if error.kind == "stream_error" else "api_error"
        return ErrorInfo(type=kind, message=str(error), code=error.kind)
    code = "limit_reached" if isinstance(error, LimitReached) else type(error).__name__
    return ErrorInfo(type="flow_error", message=str(error), code=code)


def raised_by(agent: str, error: ErrorInfo) -> Exception:
    """The error that an agent's last event tells of, to be raised by the node that ran it."""
    if error.type == "stop_agent_error":
        return StopAgent(error.message)
    if error.type in ("api_error", "stream_error"):
        return ModelError(error.message, kind=error.code or error.type)
    return NodeError(f"agent '{agent}' failed: {error.message}", node=agent)


ENGINE_FAILURES = (EffectUnknown, CheckpointError)
"""What no agent can answer for: an effect of which nobody knows whether it took place, a store that fails. Inside an
agent that is a tool it is the failure of the whole run, not a result that a model sees and tries again."""


def engine_failure(error: BaseException | None) -> bool:
    """Whether a failure is one of the engine, or among several has one."""
    if isinstance(error, BaseExceptionGroup):
        return any(engine_failure(one) for one in error.exceptions)
    return isinstance(error, ENGINE_FAILURES)
