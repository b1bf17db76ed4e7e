"""What a client is told when a request is refused, and when a run ends badly; nothing of the server's own."""

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

_SILENT = "the server's log says why"
_CODES = {401: "unauthorized", 404: "not_found", 405: "method_not_allowed", 413: "too_large", 415: "no_json"}
_OF_MODEL = {
    "context_length": ("context_length_exceeded", "the conversation is longer than the model can read"),
    "rate_limit": ("rate_limit_exceeded", "the model's provider takes no more requests for now"),
    "timeout": ("model_timeout", "the model did not answer in time"),
    "output": ("output_does_not_fit", "the model's answer does not fit its schema"),
}
"""Kind of a ModelError -> code and text; others are `model_error`."""


class Refused(GraphAgentError):
    """A request that is answered with an error before any event. `status`: of HTTP; `code`: what programs look at;
    `param`: the field that is meant; `more`: plain data beside them."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        code: str | None = None,
        param: str | None = None,
        more: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or _CODES.get(status, "bad_request")
        self.param = param
        self.more = more or {}

    def response(self) -> Response:
        """`{"error": {"code", "message", "param", ...}}`. Clients try again what is busy, so they are told when."""
        headers = {401: {"www-authenticate": "Bearer"}, 429: {"retry-after": "1"}, 503: {"retry-after": "1"}}
        error = {"code": self.code, "message": str(self), "param": self.param, **self.more}
        return JSONResponse({"error": error}, self.status, headers.get(self.status))


def nothing_there(what: str) -> Refused:
    """The answer for what is absent, and for what is another user's: the same one."""
    return Refused(f"there is no such {what}", status=404)


def refusal(error: Exception) -> Refused:
    """An exception that kept a request from being done, as the client is told it. What is no fault of the client is
    logged, and not told: it may name things of the server's."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, BadBody):
        return Refused(str(error), status=error.status)
    if isinstance(error, TooMany):
        return Refused(str(error), status=429, code="too_many_runs")
    if isinstance(error, SessionBusy):
        return Refused("another run goes on in this thread: wait for its end, or cancel it", status=409, code="busy")
    if isinstance(error, InterruptedRunError):
        return Refused("the thread waits for answers: send 'resume'", status=409, code="interrupted")
    if isinstance(error, AnswerError | CheckpointNotFound):
        return Refused(str(error), code="answers_do_not_fit", param="resume")
    if isinstance(error, UsageError):
        return Refused(str(error))
    _log.error("a request could not be done", exc_info=error)
    if isinstance(error, ServiceBusy | StoreBusy):
        return Refused("the store is busy; try again", status=503, code="store_busy")
    return Refused(f"the request could not be done; {_SILENT}", status=500, code="failed")


def problem(outcome: str, reason: str, error: ErrorInfo | None) -> tuple[str, str]:
    """Code and text of the event that ends a run which came to no answer."""
    if outcome == "limit_reached" and reason == "time":
        return "timeout", "the time of the run was up"
    if outcome in ("limit_reached", "stalled"):
        return outcome, "a limit of the agent ended the run" if outcome == "limit_reached" else "the run came to a halt"
    return trouble(error)


def trouble(error: ErrorInfo | None) -> tuple[str, str]:
    """Code and text of an error in a run, for a client: of what failed inside, the log has more."""
    if error is not None and error.type in ("api_error", "stream_error"):
        return _OF_MODEL.get(error.code or "", ("model_error", "the model failed"))
    if error is not None and error.type == "stop_agent_error":
        return "stopped", f"the agent stopped: {error.message}"
    if error is not None and error.type == "cancelled":
        return "cancelled", "it was cancelled"
    return "failed", f"the run failed; {_SILENT}"
