"""Where nothing may be changed: the page says why, its buttons are off, and the server refuses as well."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest
import studio_graphs
from browser import GRAPHS, fill, page_on, studio
from test_studio_step import press, stands


def rows_of(db: str) -> list[Any]:
    """All rows of checkpoints."""
    with sqlite3.connect(db.removeprefix("sqlite:///")) as connection:
        return connection.execute("SELECT * FROM ga_rows ORDER BY id").fetchall()


def test_a_read_only_studio_refuses_on_the_page_and_behind_it(launched: Any, db: str) -> None:
    """Every page has the reason; what writes is off, and a command that reaches the server all the same is refused."""
    fill(db, studio_graphs.questions, {"text": "shoes"}, "ask-1")
    before = rows_of(db)
    with (
        studio(db, f"{GRAPHS}:questions", "--read-only") as served,
        page_on(launched, served.at("/run/ask-1")) as page,
    ):
        assert served.said["read_only"] == "it was started with --read-only"
        with page_on(launched, served.url) as runs:
            assert runs.get_by_role("button", name="Start").count() == 0
        page.get_by_role("note").get_by_text("Read-only: it was started with --read-only").wait_for()
        toolbar = page.get_by_role("toolbar")
        for name in ("Step, also", "Next step", "Continue to a breakpoint", "Fork from here"):
            assert toolbar.get_by_role("button", name=name).is_disabled(), name
            assert "--read-only" in str(toolbar.get_by_role("button", name=name).get_attribute("title"))
        for key in ("s", "n", "c", "f"):
            page.keyboard.press(key)
            page.get_by_text("read-only: it was started with --read-only").last.wait_for()
        press(page, "Step back")
        stands(page, "ask-1:1")
        toolbar.locator("button:not([disabled])[aria-label^='Step, also']").wait_for()
    assert rows_of(db) == before


def test_a_run_without_its_graph_is_looked_at_only(launched: Any, db: str) -> None:
    """The picture comes from the stored document; the page says how to give the graph."""
    fill(db, studio_graphs.order, {"text": "shoes"}, "order-1")
    with studio(db) as served, page_on(launched, served.at("/run/order-1")) as page:
        page.get_by_text("its graph was not given: start the studio with module:graph").first.wait_for()
        page.wait_for_selector('.ga-picture .node[data-node="close"][data-state="done"]')
        press(page, "Step back")
        stands(page, "next: close")
        press(page, "Step, also")
        stands(page, ", end")


def test_a_copied_database_is_read_only_unless_writing_is_allowed(launched: Any, db: str) -> None:
    """A store that another machine wrote last is looked at only, and --write says that it may be changed."""
    fill(db, studio_graphs.order, {"text": "shoes"}, "order-1")
    with sqlite3.connect(db.removeprefix("sqlite:///")) as connection:
        columns = {row[1] for row in connection.execute("PRAGMA table_info(ga_lineages)")}
        kept = next(name for name in ("last_owner", "owner") if name in columns)
        connection.execute(f"UPDATE ga_lineages SET {kept} = ?", ('["prod-7", "another-boot", "", 7, "1"]',))
    with studio(db, f"{GRAPHS}:order") as served, page_on(launched, served.at("/run/order-1")) as page:
        page.get_by_role("note").get_by_text("last written on host 'prod-7'").wait_for()
    with studio(db, f"{GRAPHS}:order", "--write") as served:
        assert served.said["read_only"] is None


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("postgresql://ann@127.0.0.1/test", None),
        ("postgresql://ann@localhost:5432/test", None),
        ("postgresql://ann@/test?host=/var/run/postgresql", None),
        ("postgresql://ann@db.example:5432/test", "db.example"),
        ("postgresql://ann@10.0.0.7/test", "10.0.0.7"),
        ("postgresql://ann@/test?host=db.example", "db.example"),
        ("postgresql://ann@127.0.0.1,db.example/test", "db.example"),
        ("postgresql+psycopg://ann@db.example/test", "db.example"),
        ("sqlite:///runs.db", None),
        ("runs.db", None),
    ],
)
def test_a_database_on_another_host_is_read_only(url: str, host: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL anywhere but on the loopback interface or a socket of this machine may be production."""
    from runner.cli.studio import other_host

    monkeypatch.delenv("PGHOST", raising=False)
    assert other_host(url) == host
