"""Memories and evidence that were fetched before the chain began go in beside the history."""

from __future__ import annotations

from dataclasses import dataclass

from processors.projection import Note, Projection

STEP = "recall"


@dataclass(frozen=True, slots=True)
class Recall:
    """Add the caller's preloaded blocks, unless the reader sees only its own run. Source: spec/context, 6.2 and 16."""

    def __call__(self, projection: Projection) -> Projection:
        """Add the blocks of `given`."""
        blocks = [block for block in projection.given.blocks if block.text.strip()]
        if not blocks:
            return projection
        if projection.contents != "session":
            return projection.noted([Note(STEP, "ignored", "the agent sees only its own run; nothing is recalled")])
        notes = [Note(STEP, "added", f"{block.kind}: {len(block.text)} characters") for block in blocks]
        return projection.noted(notes, blocks=(*projection.blocks, *blocks))
