"""Where a finding is, as a reader or a CI wants it: relative to a folder, with the column of the call."""

from __future__ import annotations

import linecache
import os
from dataclasses import replace
from pathlib import Path

from graphagent.graph.definition import Place
from graphagent.validation import Diagnostic


def repository(folder: Path) -> Path:
    """The root of the git repository that a folder belongs to, else the folder."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def relative(file: str, base: Path) -> str:
    """A file as named from `base`, with forward slashes; as it is where it lies elsewhere."""
    path = Path(os.path.abspath(file))
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def localised(finding: Diagnostic, base: Path, file: str) -> Diagnostic:
    """The finding with files named from `base`, in its texts too; without a place of its own it is at the first line
    of `file`."""
    where = finding.where if finding.where.file else Place(file, 1) if file else finding.where
    if where.file:
        where = Place(relative(where.file, base), where.line)
    return replace(
        finding,
        where=where,
        message=_told(finding.message, base),
        fix=_told(finding.fix, base),
        related=tuple(_told(text, base) for text in finding.related),
    )


def column(where: Place, base: Path) -> int:
    """The column of the first sign of the line, from 1."""
    line = linecache.getline(str(base / where.file), where.line)
    return len(line) - len(line.lstrip()) + 1


def _told(text: str, base: Path) -> str:
    return text.replace(f"{base}{os.sep}", "")
