"""Whether a server lives, and whether it can do its work: for those who start servers and send requests to them."""

from __future__ import annotations

import logging

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graphagent.ledger import SessionKey
from runner.runner import Runner

_log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds in which the session service has to answer."""


def health_routes(runner: Runner) -> list[Route]:
    """`/healthz`: the process answers. `/readyz`: its session service does too, else 503. Neither wants a token, and
    neither tells anything of a user."""

    async def alive(request: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def ready(request: Request) -> Response:
        try:
            with anyio.fail_after(PATIENCE):
                await runner.sessions.get(SessionKey(runner.app_name, "readiness", "readiness"), last=1)
        except Exception as error:
            _log.warning("not ready: the session service doesn't answer: %s", error)
            return JSONResponse({"status": "the session service does not answer"}, 503)
        return JSONResponse({"status": "ready"})

    return [Route("/healthz", alive, methods=["GET"]), Route("/readyz", ready, methods=["GET"])]
