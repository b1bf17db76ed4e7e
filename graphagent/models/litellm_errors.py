"""What litellm raises, as ModelError: which kind, and whether another attempt may do."""

from __future__ import annotations

from typing import Any

from graphagent.errors import ModelError

_KINDS: tuple[tuple[str, str, bool], ...] = (  # the first class that is among the error's own decides
    ("ContextWindowExceededError", "context_length", False),
    ("AuthenticationError", "auth", False),
    ("PermissionDeniedError", "auth", False),
    ("RateLimitError", "rate_limit", True),
    ("Timeout", "timeout", True),
    ("TimeoutError", "timeout", True),
    ("BadRequestError", "invalid_request", False),
    ("NotFoundError", "invalid_request", False),
    ("UnprocessableEntityError", "invalid_request", False),
    ("UnsupportedParamsError", "invalid_request", False),
    ("InternalServerError", "api_error", True),
    ("ServiceUnavailableError", "api_error", True),
    ("BadGatewayError", "api_error", True),
    ("APIConnectionError", "api_error", True),
    ("TransportError", "api_error", True),
)
_TOO_LONG = ("context_length_exceeded", "maximum context length", "prompt is too long", "too many tokens")
_MENDS = {
    "context_length": "shorten the history, or take a model with a larger window",
    "auth": "check the API key and what it may use",
    "rate_limit": "wait, or ask for less at once",
    "timeout": "raise 'timeout', or ask for less at once",
    "invalid_request": "change the request",
}
MAX_WAIT = 60.0
"""Seconds; a provider that asks for a longer wait is not waited for."""


def model_error(error: Exception, model: str, *, begun: bool) -> ModelError:
    """The error of a call of `model`; `begun`: parts of the answer are out already, so that it is a `stream_error`."""
    cause = _cause(error)
    kind, retryable = _kind(cause)
    told = " ".join(str(cause).split())
    if begun:
        return ModelError(
            f"the answer of model '{model}' broke off: {told}; what came is incomplete, ask again for a whole one",
            kind="stream_error",
            retryable=retryable,
        )
    mend = f"; {_MENDS[kind]}" if kind in _MENDS else ""
    return ModelError(f"model '{model}' failed ({kind}): {told}{mend}", kind=kind, retryable=retryable)


def wait_asked_for(error: Exception) -> float | None:
    """Seconds that the provider asks to wait (`retry-after-ms`, `retry-after`); None if it doesn't say."""
    headers: Any = getattr(getattr(_cause(error), "response", None), "headers", None) or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) * unit, 0.0)
        except (KeyError, ValueError):  # not there, or a date
            continue
    return None


def _cause(error: Exception) -> Exception:
    """The provider's own error under litellm's wrapping of those that come in a stream."""
    original = getattr(error, "original_exception", None)
    return original if isinstance(original, Exception) else error


def _kind(error: Exception) -> tuple[str, bool]:
    told = f"{error} {getattr(error, 'body', None)}".lower()  # the provider's code is in the body only
    if any(sign in told for sign in _TOO_LONG):
        return "context_length", False
    names = {found.__name__ for found in type(error).__mro__}
    for name, kind, retryable in _KINDS:
        if name in names:
            return kind, retryable and "insufficient_quota" not in told
    status = getattr(error, "status_code", None)
    if status in (401, 403):
        return "auth", False
    if isinstance(status, int) and 400 <= status < 500:
        return "invalid_request", status in (408, 409, 425)
    return "api_error", isinstance(status, int) and status >= 500
