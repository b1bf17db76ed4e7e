"""Modules of a test's own folder, which must not be found by the next test."""

from __future__ import annotations

import sys
from pathlib import Path


def forget_modules(folder: Path) -> None:
    """Forget what was imported from files below the folder."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).is_relative_to(folder):
            del sys.modules[name]
