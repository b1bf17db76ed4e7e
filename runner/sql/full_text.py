"""The index of the words in `ga_search`, which SQLAlchemy has no names for."""

from __future__ import annotations

_SCOPED = "replace({row}words || {row}marks, ' ', ' ' || {row}scope)"

TOKENS = "ga_tokens(words, marks, scope)"
"""PostgreSQL: the words of a row, each with the scope before it, and a semicolon behind."""


def _changed(command: str, row: str) -> str:
    named = {"insert": "ga_search_words(rowid, words)", "delete": "ga_search_words(ga_search_words, rowid, words)"}
    value = {"insert": "", "delete": "'delete', "}[command]
    return (
        f"CREATE TRIGGER ga_search_{command} AFTER {command.upper()} ON ga_search BEGIN "
        f"INSERT INTO {named[command]} VALUES ({value}{row}.place, {_SCOPED.format(row=f'{row}.')}); END"
    )


INDEX = {
    "sqlite": (
        "CREATE VIRTUAL TABLE ga_search_words USING fts5 "
        "(words, content='', detail=none, columnsize=0, tokenize=\"ascii tokenchars '=@'\")",
        _changed("insert", "new"),
        _changed("delete", "old"),
    ),
    "postgresql": (
        "CREATE FUNCTION ga_tokens(words text, marks text, scope text) RETURNS text[] LANGUAGE plpgsql IMMUTABLE "
        f"COST 500 AS $$ BEGIN RETURN string_to_array(substr({_SCOPED.format(row='')}, 2), ' '); END $$",
        f"CREATE INDEX ga_search_words ON ga_search USING gin (({TOKENS})) "
        "WITH (fastupdate = on, gin_pending_list_limit = 128)",
    ),
}
"""Statements that make it, for each database. The cost of PostgreSQL's function keeps it from calling it for each row
of a small table instead of asking the index; for that it mustn't be one that can be put in line. What waits to be
sorted into the index is read by every search, so it is kept short (kilobytes)."""
