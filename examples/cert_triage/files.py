"""Where a triage puts what it writes, and how it writes it."""

from __future__ import annotations

import os
import re
from pathlib import Path


def output_path(folder: str, kind: str, target: str, suffix: str) -> Path:
    """`<folder>/<kind>-<name of the target><suffix>`: the file's name without its suffix, or host and port."""
    path = Path(target)
    stem = path.stem if path.suffix in (".pem", ".crt", ".cer") else path.name
    return Path(folder) / f"{kind}-{re.sub(r'[^A-Za-z0-9._-]+', '-', stem).strip('-.') or 'target'}{suffix}"


def write_file(path: str, text: str, mode: int) -> str:
    """Write a file whole or not at all, with these permission bits; an older file is replaced. Returns the path."""
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = final.with_name(f"{final.name}.part")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    os.replace(draft, final)
    return path
