"""Errors in the shape of the API: `{"error": {"message", "type", "param", "code"}}`, under a fitting status."""

from __future__ import annotations

import logging
from typing import Any

from starlette.responses import JSONResponse, Response

from graphagent.errors import (
    AnswerError,
    CheckpointNotFound,
    GraphAgentError,
    InterruptedRunError,
    ServiceBusy,
    SessionBusy,
    StoreBusy,
    UsageError,
)
from graphagent.ledger import ErrorInfo
from runner.servers.limits import BadBody, TooMany

_log = logging.getLogger(__name__)

INVALID = "invalid_request_error"
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_SILENT = "the request could not be answered; the server's log says why"
_TOO_LONG = "This model's maximum context length is exceeded: send fewer or shorter messages"  # how clients know it
_OF_MODEL = {
    "context_length": (400, "context_length_exceeded"),
    "rate_limit": (429, "rate_limit_exceeded"),
    "timeout": (504, "model_timeout"),
    "output": (502, "output_does_not_fit"),
}
"""Kind of a ModelError -> status and code; others are 502 `model_error`."""


class ApiError(GraphAgentError):
    """A request that is answered with an error. `param`: the field that is meant; `code`: what programs look at."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param

    @property
    def body(self) -> dict[str, Any]:
        """The error as the API says it."""
        kind = _TYPES.get(self.status, INVALID if self.status < 500 else "internal_error")
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        """The whole answer. Clients try again what is said to be busy, so they are told when."""
        headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}, 503: {"retry-after": "1"}}
        return JSONResponse(self.body, self.status, headers.get(self.status))


def api_error(error: Exception) -> ApiError:
    """An exception that kept a run from beginning, as the API says it. What is no fault of the client is logged, and
    not told: it may name things of the server's."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, BadBody):
        return ApiError(str(error), status=error.status)
    if isinstance(error, TooMany):
        return ApiError(str(error), status=429, code="too_many_runs")
    if isinstance(error, SessionBusy):
        return ApiError("another run goes on in this session: wait for its end", status=409, code="session_busy")
    if isinstance(error, InterruptedRunError):
        return ApiError(
            "the session waits for answers to its questions: send them as 'answers'", status=409, code="interrupted"
        )
    if isinstance(error, AnswerError | CheckpointNotFound):
        return ApiError(str(error), status=400, code="answers_do_not_fit", param="answers")
    if isinstance(error, UsageError):
        return ApiError(str(error), status=400)
    _log.error("a run could not begin", exc_info=error)
    if isinstance(error, ServiceBusy | StoreBusy):
        return ApiError("the store is busy; try again", status=503, code="busy")
    return ApiError(_SILENT, status=500)


def run_error(outcome: str, error: ErrorInfo | None) -> ApiError:
    """How a run ended that did not come to an answer, as the API says it."""
    if outcome == "cancelled":
        return ApiError("the run was cancelled", status=409, code="run_cancelled")
    if error is not None and error.type in ("api_error", "stream_error"):
        status, code = _OF_MODEL.get(error.code or "", (502, "model_error"))
        told = _TOO_LONG if status == 400 else f"the model failed: {code}"
        _log.warning("a model failed: %s", error.message)
        return ApiError(told, status=status, code=code)
    if error is not None and error.type == "stop_agent_error":
        return ApiError(f"the agent stopped: {error.message}", status=422, code="stopped")
    _log.error("a run is %s: %s", outcome, error)
    return ApiError(_SILENT, status=500, code=outcome)
