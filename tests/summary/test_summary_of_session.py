"""Which summary a session has for a reader of its texts."""

from graphagent.ledger import WHOLE, Boundary, Session, Summary


def test_c042_a_branch_without_one_gets_that_of_the_whole_session() -> None:
    """The key's own, else that of the whole session; an empty text is none, and without any there is none."""
    own, whole = (Summary(text=text, boundary=Boundary(), updated_at=1.0) for text in ("own", "whole"))
    session = Session(app="app", user="ann", id="s", summaries={"app/a": own, WHOLE: whole})
    assert session.summary_for("app/a") == own
    assert session.summary_for("app/b") == whole
    assert session.summary_for() == whole
    empty = own.model_copy(update={"text": " "})
    assert Session(app="app", user="ann", id="s", summaries={"app/a": empty}).summary_for("app/a") is None
