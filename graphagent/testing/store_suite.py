"""The conformance suite of checkpoint stores: a class of tests that any store can run.

```python
from graphagent.testing.store_suite import checkpoint_store_suite

TestMyStore = checkpoint_store_suite(lambda: MyStore("test.db"))
```

pytest and unittest-like collectors find the tests by their names; nothing here imports either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from graphagent.testing import store_cases, store_cases_find, store_cases_lease, store_cases_upkeep
from graphagent.testing.store_cases import Stores

Case = Callable[[Stores], Awaitable[None]]
CASES: tuple[Case, ...] = (
    *store_cases.CASES,
    *store_cases_lease.CASES,
    *store_cases_upkeep.CASES,
    *store_cases_find.CASES,
)
"""Every promise of `graphagent.checkpoint.store.CheckpointStore`, as functions that take the factory of a store."""


def checkpoint_store_suite(factory: Stores, *, backend: str = "asyncio") -> type:
    """A test class with a method for each case; assign it to a name that begins with `Test`.

    `factory` is called without arguments and returns an open-able store (an async context manager); for a persistent
    store every call must lead to the same database, which needs not be empty. `backend` is anyio's: `asyncio` or
    `trio`. Cases that don't apply raise `unittest.SkipTest`: to a store that isn't persistent, or one whose runs can't
    be searched (`SearchableRuns`).
    """

    def method(case: Case) -> Callable[[Any], None]:
        def test(self: Any) -> None:
            anyio.run(case, factory, backend=backend)

        test.__doc__ = case.__doc__
        test.__name__ = f"test_{case.__name__}"
        return test

    tests = [method(case) for case in CASES]
    return type("CheckpointStoreSuite", (), {test.__name__: test for test in tests})
