"""Ranking by meaning beside words: vectors of messages, kept with the index and made when a search first needs them.

An `Embedder` turns texts into vectors whose angle says how near their meanings are. The extra `recall` brings what
`SentenceEmbedder` needs; any other embedder needs numpy only.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, Protocol

import anyio.to_thread

from graphagent.errors import ServiceError, UsageError

BATCH = 64
"""Texts that are embedded at once."""
LONGEST = 2000
"""Characters of a message that are embedded; models read no more than its beginning."""
Vectors = list[tuple[int, bytes]]
"""Places and vectors, as 16-bit floats."""

_log = logging.getLogger(__name__)


class Embedder(Protocol):
    """Turns texts into vectors."""

    name: str
    """Names the model: vectors of another name are no use, and are made anew."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector for each text, all of one length."""
        ...


class SentenceEmbedder:
    """A model of the package sentence-transformers, on this machine. `model`: a folder, or a name that the package
    knows; it is loaded when first used, and works in a thread. Raises UsageError without the package."""

    def __init__(self, model: str, *, name: str | None = None) -> None:
        if find_spec("sentence_transformers") is None:
            raise UsageError("SentenceEmbedder needs sentence-transformers; pip install 'graphagent[recall]'")
        self.name = name or model
        self._path = model
        self._model: Any = None

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector of length 1 for each text."""
        return await anyio.to_thread.run_sync(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Sequence[Sequence[float]]:
        if self._model is None:
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(self._path, device="cpu")
        found: Sequence[Sequence[float]] = self._model.encode(
            texts, normalize_embeddings=True, show_progress_bar=False
        ).tolist()
        return found


class VectorStore(Protocol):
    """Where the vectors of messages are kept."""

    async def vectors(self, name: str, sessions: Sequence[int]) -> Vectors:
        """Those of a model, of the messages of sessions."""
        ...

    async def without_vector(self, name: str, sessions: Sequence[int], limit: int) -> list[tuple[int, str]]:
        """Places and texts of messages that have none of it, newest first."""
        ...

    async def put_vectors(self, name: str, vectors: Vectors) -> None:
        """Keep vectors, as far as their messages are still there."""
        ...


def check_embedder(embedder: Embedder | None) -> None:
    """Raise UsageError if there is one, and numpy isn't."""
    if embedder is not None and find_spec("numpy") is None:
        raise UsageError("an embedder needs numpy; pip install numpy, or 'graphagent[recall]'")


async def nearness(embedder: Embedder, store: VectorStore, sessions: Sequence[int], text: str) -> dict[int, float]:
    """How near the meaning of each message is to a text: the cosine, by place.

    Messages without a vector get one first. None at all if the embedder fails: then the words must do, and the log says
    so. Raises ServiceError.
    """
    try:
        [sought] = await _embedded(embedder, [text])
        while missing := await store.without_vector(embedder.name, sessions, BATCH):
            made = await _embedded(embedder, [one[:LONGEST] for _, one in missing])
            places = [place for place, _ in missing]
            await store.put_vectors(embedder.name, list(zip(places, made, strict=True)))
            if len(missing) < BATCH:
                break
    except ServiceError:
        raise
    except Exception as error:  # whatever a model, or a service that runs one, may raise
        _log.warning("embedder '%s' failed, sessions are searched by words only: %r", embedder.name, error)
        return {}
    return _cosines(sought, await store.vectors(embedder.name, sessions))


async def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    import numpy as np

    found = np.asarray(await embedder.embed(texts), dtype=np.float32)
    if found.ndim != 2 or len(found) != len(texts) or not np.isfinite(found).all():
        raise ValueError(f"{len(texts)} texts gave an array of {found.shape}; one finite vector a text was expected")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    unit = found / np.where(lengths > 0, lengths, 1)
    return [row.tobytes() for row in unit.astype("<f2")]


def _cosines(sought: bytes, vectors: Vectors) -> dict[int, float]:
    import numpy as np

    alike = [(place, vector) for place, vector in vectors if len(vector) == len(sought)]
    if not alike:
        return {}
    matrix = np.frombuffer(b"".join(vector for _, vector in alike), dtype="<f2").reshape(len(alike), -1)
    cosines = matrix.astype(np.float32) @ np.frombuffer(sought, dtype="<f2").astype(np.float32)
    return dict(zip((place for place, _ in alike), cosines.tolist(), strict=True))
