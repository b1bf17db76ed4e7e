"""Reserved node ids."""

from __future__ import annotations

from typing import Final

START: Final = "__start__"
END: Final = "__end__"
END_INDEX: Final = -1
"""END in the index form of the compiled tables."""
