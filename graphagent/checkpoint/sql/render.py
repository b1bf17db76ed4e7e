"""Write `migrations/create.*.sql` from `tables.py`: `python -m graphagent.checkpoint.sql.render`, after a change there.

A change of the tables also needs a migration in `migrations/versions` and `schema.VERSION` raised by one.
"""

from __future__ import annotations

from sqlalchemy import MetaData
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from graphagent.checkpoint.sql.schema import MIGRATIONS, VERSION, VERSION_TABLE
from graphagent.checkpoint.sql.tables import METADATA

DIALECTS: dict[str, Dialect] = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]


def creation_sql(
    dialect: Dialect, metadata: MetaData = METADATA, version_table: str = VERSION_TABLE, version: int = VERSION
) -> str:
    """The statements that make all tables of this version, each ended by a semicolon and a new line."""
    statements = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)))
        statements += [str(CreateIndex(index).compile(dialect=dialect)) for index in table.indexes]
    statements += [  # as alembic would make it
        f"CREATE TABLE {version_table} (\n    version_num VARCHAR(32) NOT NULL,\n"
        f"    CONSTRAINT {version_table}_pkc PRIMARY KEY (version_num)\n)",
        f"INSERT INTO {version_table} (version_num) VALUES ('{version:04}')",
    ]
    lines = ";\n".join(text.strip() for text in statements).expandtabs(4).splitlines()
    return "\n".join(line.rstrip() for line in lines).replace("\n WITHOUT", " WITHOUT") + ";\n"


def main() -> None:
    """Write the file of each database."""
    for name, dialect in DIALECTS.items():
        (MIGRATIONS / f"create.{name}.sql").write_text(creation_sql(dialect))


if __name__ == "__main__":
    main()
