"""Urls of databases: which database they mean, and how to show them."""

from __future__ import annotations

import os
import re

from graphagent.errors import UsageError


def sqlite_path(url: str) -> str | None:
    """The absolute path of the file that a url means: "" for SQLite in memory, None for PostgreSQL.

    Known are `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite://` (in memory), a plain path, and
    `postgresql://user@host:port/database`, also with the driver as in `postgresql+psycopg://`. Raises UsageError.
    """
    scheme, mark, rest = url.partition("://")
    if scheme in ("postgresql", "postgres", "postgresql+psycopg") and mark:
        return None
    if mark and scheme != "sqlite":
        raise UsageError(
            f"'{redacted(url)}' has the scheme '{scheme}'; known: 'sqlite', 'postgresql', 'postgresql+psycopg'"
        )
    if mark and rest and not rest.startswith("/"):
        raise UsageError(f"'{url}' names a host; write 'sqlite:///{rest}' for the file '{rest}'")
    path = rest[1:] if mark else url
    return os.path.abspath(path) if path not in ("", ":memory:") else ""


def postgres_url(url: str) -> str:
    """The url of a PostgreSQL database as its own client library takes it."""
    return "postgresql://" + url.partition("://")[2]


def redacted(url: str) -> str:
    """A url for messages, without its password."""
    return re.sub(r"(://[^:@/]*):[^@/]*@", r"\1@", url, count=1)
