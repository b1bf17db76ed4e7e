"""The state in the browser: what changed is marked, a value is edited where it stands, here or in a fork."""

from __future__ import annotations

from typing import Any

import panel_graphs
import pytest
import studio_graphs
from browser import GRAPHS, fill, page_on, stored, studio
from test_studio_step import press, stands

from graphagent import Executor, SqlCheckpoints

PANELS = GRAPHS.replace("studio_graphs", "panel_graphs")


def item(page: Any, name: str) -> Any:
    """The row of a field, or of a part of one."""
    return page.locator(".sg-item", has=page.locator(f".sg-name:text-is('{name}')")).last


def edited(page: Any, name: str, value: str) -> Any:
    """Open the editor of a value and enter another one."""
    page.get_by_role("button", name=f"Edit {name}", exact=True).click()
    group = page.get_by_role("group", name="Edit")
    group.get_by_label("Value, as JSON").fill(value)
    return group


def state_of(db: str, graph: Any, lineage: str) -> Any:
    """The newest state of a run."""

    async def load() -> Any:
        async with SqlCheckpoints(db) as store:
            return await Executor(graph, store).state(lineage)

    return stored(load)


def test_what_a_step_changed_is_marked(launched: Any, db: str) -> None:
    """Old and new value of a changed field, new items of a list; what stayed is left as it is, or hidden."""
    fill(db, panel_graphs.ticket, {"text": "shoes"}, "t-1")
    with studio(db, f"{PANELS}:ticket") as served, page_on(launched, served.at("/run/t-1?cp=t-1:1")) as page:
        assert item(page, "amount").get_attribute("data-mark") == "changed"
        assert item(page, "amount").locator(".sg-leaf > *").all_inner_texts() == ["amount", "0", "to", "1", "changed"]
        assert item(page, "text").get_attribute("data-mark") == "same"
        items = item(page, "items")
        assert "250 items" in items.inner_text()
        items.locator("summary").first.click()
        items.get_by_role("button", name="Show more of items").wait_for()
        assert items.locator(".sg-inside > .sg-item[data-mark=added]").count() == 100
        items.get_by_role("button", name="Show more of items").click()
        page.wait_for_function("document.querySelectorAll('.sg-inside > .sg-item').length === 200")
        page.get_by_role("switch", name="Show changed fields only").click()
        item(page, "text").wait_for(state="detached")
        press(page, "Step, also")
        stands(page, "t-1:2")
        page.locator(".sg-item[data-mark=changed]", has_text="paid r1").wait_for()
        assert page.locator(".sg-state > .sg-item").count() == 1


def test_a_value_is_edited_in_place_and_the_run_goes_on_with_it(launched: Any, db: str) -> None:
    """The edit is a new checkpoint behind the one that was shown, and continue runs from there."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    with studio(db, f"{PANELS}:decided") as served, page_on(launched, served.at("/run/d-1?cp=d-1:0")) as page:
        edited(page, "amount", "50").get_by_role("button", name="Write here").click()
        stands(page, "d-1:4 - step 0, edit")
        page.get_by_text("'amount' is edited: checkpoint d-1:4").wait_for()
        assert item(page, "amount").get_attribute("data-mark") == "changed"
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
    assert state_of(db, panel_graphs.decided, "d-1").text == "large"


def test_a_value_is_edited_in_a_fork_and_both_runs_are_compared(launched: Any, db: str) -> None:
    """The fork opens at the edited state and goes its own way; the first run stays as it was, and the comparison marks
    where they part."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    with studio(db, f"{PANELS}:decided") as served, page_on(launched, served.at("/run/d-1?cp=d-1:0")) as page:
        group = edited(page, "amount", "50")
        group.get_by_label("Name of the fork").fill("d-2")
        group.get_by_role("button", name="Write to a fork").click()
        page.wait_for_url("**/run/d-2*")
        stands(page, "step 0, edit")
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
        page.goto(served.at("/compare?a=d-1&b=d-2"))
        parting = page.locator("tr[data-mark=parting]")
        parting.wait_for()
        page.goto(served.at("/run/d-1"))
        stands(page, "d-1:3")
        page.locator(".sg-value", has_text="small").wait_for()
    assert state_of(db, panel_graphs.decided, "d-1").text == "small"
    assert state_of(db, panel_graphs.decided, "d-2").text == "large"


def test_a_part_deep_inside_is_edited(launched: Any, db: str) -> None:
    """A number within a model within the state; the rest of the field stays."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    with studio(db, f"{PANELS}:decided") as served, page_on(launched, served.at("/run/d-1?cp=d-1:1")) as page:
        item(page, "address").locator("summary").click()
        edited(page, "address.number", "7").get_by_role("button", name="Write here").click()
        stands(page, ", edit")
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
    assert state_of(db, panel_graphs.decided, "d-1").address == panel_graphs.Address(street="Elm", number=7)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("amount", '"many"', "amount"),
        ("amount", "1,", "no JSON"),
        ("address", '{"street": "Elm", "number": 0}', "greater than or equal to 1"),
    ],
)
def test_a_value_that_does_not_fit_is_said_at_its_place(
    launched: Any, db: str, name: str, value: str, said: str
) -> None:
    """The editor stays open with the reason, nothing is written, and Escape closes it."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    with studio(db, f"{PANELS}:decided") as served, page_on(launched, served.at("/run/d-1?cp=d-1:1")) as page:
        group = edited(page, name, value)
        group.get_by_role("button", name="Write here").click()
        group.get_by_role("alert").get_by_text(said).wait_for()
        stands(page, "d-1:1 - step 1")
        group.get_by_label("Value, as JSON").press("Escape")
        group.wait_for(state="detached")
        assert "4 checkpoints" in page.locator(".sg-head").inner_text()


def test_an_editor_stays_open_while_the_cursor_moves(launched: Any, db: str) -> None:
    """What was typed is not lost when the cursor moves on; the editor says which checkpoint it edits."""
    fill(db, studio_graphs.order, {"text": "shoes"}, "order-1")
    with studio(db, f"{GRAPHS}:order") as served, page_on(launched, served.at("/run/order-1?cp=order-1:1")) as page:
        group = edited(page, "amount", "99")
        press(page, "Step, also")
        stands(page, "order-1:2")
        group.get_by_text("this edits checkpoint order-1:1; the cursor has moved on").wait_for()
        assert group.get_by_label("Value, as JSON").input_value() == "99"
        group.get_by_role("button", name="Write here").click()
        stands(page, "step 1, edit")


def test_a_read_only_studio_has_no_way_to_edit(launched: Any, db: str) -> None:
    """The buttons are off and say why."""
    fill(db, panel_graphs.decided, {"amount": 1}, "d-1")
    with (
        studio(db, f"{PANELS}:decided", "--read-only") as served,
        page_on(launched, served.at("/run/d-1")) as page,
    ):
        edit = page.get_by_role("button", name="Edit amount")
        edit.wait_for()
        assert edit.is_disabled()
        assert "--read-only" in str(edit.get_attribute("title"))
