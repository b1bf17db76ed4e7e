"""The one place that imports litellm, and what has to be said to it before."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio.to_thread

_SWITCHES = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import fetches a price list: 20 s where there is no network
    "REPEATED_STREAMING_CHUNK_LIMIT": "1000000000",  # else a table with 100 equal pieces in a row is an error
}
_loaded: list[Any] = []


def load_litellm() -> Any:
    """The litellm module; the first call takes seconds. Environment variables that are set already stay as they are."""
    if not _loaded:
        ours = "litellm" not in sys.modules
        for name, value in _SWITCHES.items():
            os.environ.setdefault(name, value)
        import litellm

        if ours:  # else whoever imported it decides
            litellm.suppress_debug_info = True  # it prints advice to the terminal with every error
        _loaded.append(litellm)
    return _loaded[0]


async def litellm_module() -> Any:
    """The same without holding up the event loop."""
    return _loaded[0] if _loaded else await anyio.to_thread.run_sync(load_litellm)
