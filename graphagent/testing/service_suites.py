"""The conformance suites of services: classes of tests that any session, memory or artifact service can run.

```python
from graphagent.testing.service_suites import session_service_suite

TestMySessions = session_service_suite(lambda: MySessions("test.db"))
```

As with `checkpoint_store_suite`, pytest and unittest-like collectors find the tests by their names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from graphagent.services import ArtifactService, MemoryService, SessionService
from graphagent.testing import (
    artifact_cases,
    memory_cases,
    session_cases,
    session_cases_search,
    session_cases_state,
    session_cases_window,
)


def session_service_suite(factory: Callable[[], SessionService], *, backend: str = "asyncio") -> type:
    """A test class with a method for each promise of `SessionService`; assign it to a name that begins with `Test`.

    `factory` is called without arguments; every call must lead to the same sessions (a service in memory: return one
    object), and what it returns is closed by the tests. They use ids of their own, so the store needs not be empty.
    `backend` is anyio's: `asyncio` or `trio`.
    """
    cases = (*session_cases.CASES, *session_cases_state.CASES)
    return _suite("SessionServiceSuite", cases, factory, backend)


def searchable_sessions_suite(factory: Callable[[], SessionService], *, backend: str = "asyncio") -> type:
    """As `session_service_suite`, with the promises of `SearchableSessions`."""
    return _suite("SearchableSessionsSuite", session_cases_search.CASES, factory, backend)


def windowed_sessions_suite(factory: Callable[[], SessionService], *, backend: str = "asyncio") -> type:
    """As `session_service_suite`, with the promises of `WindowedSessions`."""
    return _suite("WindowedSessionsSuite", session_cases_window.WINDOWS, factory, backend)


def summary_leases_suite(factory: Callable[[], SessionService], *, backend: str = "asyncio") -> type:
    """As `session_service_suite`, with the promises of `SummaryLeases`."""
    return _suite("SummaryLeasesSuite", session_cases_window.LEASES, factory, backend)


def memory_service_suite(factory: Callable[[], MemoryService], *, backend: str = "asyncio") -> type:
    """As `session_service_suite`, with the promises of `MemoryService`."""
    return _suite("MemoryServiceSuite", memory_cases.CASES, factory, backend)


def artifact_service_suite(factory: Callable[[], ArtifactService], *, backend: str = "asyncio") -> type:
    """As `session_service_suite`, with the promises of `ArtifactService`."""
    return _suite("ArtifactServiceSuite", artifact_cases.CASES, factory, backend)


def _suite(name: str, cases: Sequence[Callable[[Any], Awaitable[None]]], factory: Any, backend: str) -> type:
    def method(case: Callable[[Any], Awaitable[None]]) -> Callable[[Any], None]:
        def test(self: Any) -> None:
            anyio.run(case, factory, backend=backend)

        test.__doc__ = case.__doc__
        test.__name__ = f"test_{case.__name__}"
        return test

    tests = [method(case) for case in cases]
    return type(name, (), {test.__name__: test for test in tests})
