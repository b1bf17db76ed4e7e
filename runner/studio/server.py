"""Serves the studio: one store, one process, until it is told to stop."""

from __future__ import annotations

import gc
import signal
import socket

import anyio
import uvicorn
from fastapi import FastAPI
from nicegui import ui
from starlette.middleware.gzip import GZipMiddleware

from graphagent.checkpoint.sql_store import SqlCheckpoints
from runner.listening import QuietServer, address, bound
from runner.studio import compare_page, run_page, runs_page
from runner.studio.access import Access, checked_binding
from runner.studio.app import Studio
from runner.studio.serving import Ready, Serving
from runner.studio.theme import shared_head

_GRACE = 3
"""Seconds that open connections have at the end."""


async def serve(serving: Serving, ready: Ready) -> None:
    """Serve until SIGINT or SIGTERM; runs that are held then are paused, and can be resumed by anybody.

    `ready` is called with the address, and with the reason if nothing can be changed. Raises UsageError for an address
    that can't be bound.
    """
    checked_binding(serving.host, serving.token)
    listener = bound("studio", serving.host, serving.port)
    try:
        async with SqlCheckpoints(serving.url) as store, anyio.create_task_group() as group:
            refused = await serving.refused(store)
            studio = Studio(store, serving.url, serving.targets, refused, group)
            config = uvicorn.Config(
                _app(studio, serving, listener),
                log_level="warning",
                ws_ping_interval=None,
                timeout_graceful_shutdown=_GRACE,
                lifespan="on",
            )
            gc.collect()
            gc.freeze()  # what is loaded stays: each page of a long run would have the collector walk over it
            server = QuietServer(config)
            server.ready = lambda: ready(_address(serving, listener), refused)
            group.start_soon(_stop_at_signal, server)
            try:
                await server.serve([listener])
            finally:
                await studio.seats.close()
                group.cancel_scope.cancel()
    finally:
        listener.close()


def _app(studio: Studio, serving: Serving, listener: socket.socket) -> FastAPI:
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    for page in (runs_page, run_page, compare_page):
        page.register(studio)
    ui.add_head_html(shared_head(), shared=True)
    ui.run_with(
        app,
        title="graphagent studio",
        dark=None,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        show_welcome_message=False,
        reconnect_timeout=5.0,
        gzip_middleware_factory=lambda inner: GZipMiddleware(inner, minimum_size=1000, compresslevel=4),
    )
    app.add_middleware(Access, host=serving.host, port=listener.getsockname()[1], token=serving.token)
    return app


def _address(serving: Serving, listener: socket.socket) -> str:
    query = "" if serving.token is None else f"?token={serving.token}"
    return f"{address(serving.host, listener)}/{query}"


async def _stop_at_signal(server: uvicorn.Server) -> None:
    """The first signal ends the studio in an orderly way, the second doesn't wait for open connections."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            server.force_exit = server.should_exit
            server.should_exit = True
