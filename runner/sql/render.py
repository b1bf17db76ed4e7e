"""Write `migrations/create.*.sql` from `tables.py`: `python -m runner.sql.render`, after a change there.

A change of the tables also needs a migration in `migrations/versions` and `schema.VERSION` raised by one.
"""

from __future__ import annotations

from graphagent.checkpoint.sql.render import DIALECTS, creation_sql
from runner.sql.full_text import INDEX
from runner.sql.schema import MIGRATIONS, VERSION, VERSION_TABLE
from runner.sql.tables import METADATA


def service_sql(name: str) -> str:
    """The statements that make all service tables of this version in a `sqlite` or `postgresql` database."""
    return creation_sql(DIALECTS[name], METADATA, VERSION_TABLE, VERSION) + "".join(f"{sql};\n" for sql in INDEX[name])


def main() -> None:
    """Write the file of each database."""
    for name in DIALECTS:
        (MIGRATIONS / f"create.{name}.sql").write_text(service_sql(name))


if __name__ == "__main__":
    main()
