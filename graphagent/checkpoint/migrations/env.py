"""What alembic runs for a migration; `graphagent.checkpoint.sql.migrate` hands it the connection."""

from alembic import context

from graphagent.checkpoint.sql.schema import VERSION_TABLE
from graphagent.checkpoint.sql.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"], version_table=VERSION_TABLE, target_metadata=METADATA
)
context.run_migrations()
