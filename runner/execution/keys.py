"""Whose a workspace is."""

from __future__ import annotations

import hashlib
import json

from graphagent.ledger import SessionKey


def workspace_key(key: SessionKey) -> str:
    """The key of a session's workspace: another one for every app, user and session."""
    return f"session-{hashlib.sha256(json.dumps(list(key)).encode()).hexdigest()[:40]}"
