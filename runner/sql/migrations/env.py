"""What alembic runs for a migration; `runner.sql.migrate` hands it the connection."""

from alembic import context

from runner.sql.schema import VERSION_TABLE
from runner.sql.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], version_table=VERSION_TABLE, target_metadata=METADATA
)
context.run_migrations()
