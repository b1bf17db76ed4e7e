"""The tables of the first release."""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Nothing to do: a fresh database is made by `create.*.sql`, at the newest version at once."""
