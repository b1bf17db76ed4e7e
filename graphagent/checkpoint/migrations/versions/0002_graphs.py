"""The documents of the graphs that wrote rows."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """An empty table: of graphs that wrote rows before, no document is known."""
    op.create_table(
        "ga_graphs",
        sa.Column("fingerprint", sa.String(), primary_key=True),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sqlite_with_rowid=False,
    )
