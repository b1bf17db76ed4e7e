"""Identifiers: of lineages, runs and checkpoints. Random ones are made here only."""

from __future__ import annotations

import os


def fresh_id() -> str:
    """A new random id for a lineage or a run: 20 hexadecimal digits (80 bits)."""
    return os.urandom(10).hex()


def checkpoint_id(lineage: str, namespace: str, seq: int) -> str:
    """The id of a checkpoint: lineage, namespace (if any) and write order, such as `order-7:12`."""
    return f"{lineage}:{namespace}:{seq}" if namespace else f"{lineage}:{seq}"


def parse_checkpoint_id(text: str, lineage: str) -> tuple[str, int] | None:
    """Namespace and write order of an id that belongs to `lineage`; None if it doesn't.

    A bare number is taken as the write order in the root namespace.
    """
    if text.isdigit():
        return "", int(text)
    prefix = lineage + ":"
    if not text.startswith(prefix):
        return None
    namespace, _, seq = text[len(prefix) :].rpartition(":")
    return (namespace, int(seq)) if seq.isdigit() else None
