"""Questions answered in the browser: forms made from the answer's type, one by one or all at once."""

from __future__ import annotations

from typing import Any

import panel_graphs
import studio_graphs
from browser import GRAPHS, fill, page_on, stored, studio
from test_studio_step import press, stands

from graphagent import Executor, SqlCheckpoints

PANELS = GRAPHS.replace("studio_graphs", "panel_graphs")


def question(page: Any, key: str) -> Any:
    """The form of a question."""
    return page.get_by_role("region", name=f"Question {key}")


def state_of(db: str, graph: Any, lineage: str) -> Any:
    """The newest state of a run."""

    async def load() -> Any:
        async with SqlCheckpoints(db) as store:
            return await Executor(graph, store).state(lineage)

    return stored(load)


def test_two_parallel_questions_are_answered_at_once(launched: Any, db: str) -> None:
    """Both forms are filled in, and the run goes on with both answers to its end."""
    fill(db, studio_graphs.questions, {"text": "shoes"}, "ask-1")
    with studio(db, f"{GRAPHS}:questions") as served, page_on(launched, served.at("/run/ask-1")) as page:
        question(page, "approve").get_by_text("Write it?").wait_for()
        question(page, "approve").get_by_role("radio", name="yes").click()
        question(page, "budget").get_by_label("Answer", exact=True).fill("250")
        page.get_by_role("button", name="Answer all and continue").click()
        stands(page, "completed")
        page.get_by_text("Nothing is asked here").wait_for()
    state = state_of(db, studio_graphs.questions, "ask-1")
    assert (state.approve, state.budget, state.log) == ("yes", 250, ["read shoes", "write"])


def test_two_parallel_questions_are_answered_one_by_one(launched: Any, db: str) -> None:
    """The run goes on with the first answer and waits for the second, whose form is still there."""
    fill(db, studio_graphs.questions, {"text": "shoes"}, "ask-1")
    with studio(db, f"{GRAPHS}:questions") as served, page_on(launched, served.at("/run/ask-1")) as page:
        question(page, "budget").get_by_label("Answer", exact=True).fill("250")
        page.get_by_role("button", name="Answer budget").click()
        question(page, "budget").get_by_text("answered with 250; 1 more to answer").wait_for()
        page.get_by_role("button", name="Continue with the answers given").click()
        question(page, "budget").wait_for(state="detached")
        stands(page, "interrupt, next: ")
        question(page, "approve").get_by_role("radio", name="no").click()
        page.get_by_role("button", name="Answer approve").click()
        question(page, "approve").get_by_text("answered with").wait_for()
        page.locator("body").press("c")
        stands(page, "completed")
    state = state_of(db, studio_graphs.questions, "ask-1")
    assert (state.approve, state.budget) == ("no", 250)


def test_what_is_no_answer_is_said_at_its_field(launched: Any, db: str) -> None:
    """Nothing is answered, also not the question that was filled in rightly, until all of them fit."""
    fill(db, studio_graphs.questions, {"text": "shoes"}, "ask-1")
    with studio(db, f"{GRAPHS}:questions") as served, page_on(launched, served.at("/run/ask-1")) as page:
        question(page, "budget").get_by_label("Answer", exact=True).fill("much")
        page.get_by_role("button", name="Answer all and continue").click()
        question(page, "budget").get_by_role("alert").get_by_text("'much' is no whole number").wait_for()
        question(page, "approve").get_by_role("alert").get_by_text("this is needed").wait_for()
        stands(page, "next: approve, budget")
        question(page, "budget").get_by_label("Answer", exact=True).fill("3")
        page.get_by_role("button", name="Answer budget").click()
        question(page, "budget").get_by_text("answered with 3").wait_for()
        assert question(page, "budget").get_by_role("alert").count() == 0


def test_a_model_is_entered_field_by_field(launched: Any, db: str) -> None:
    """Choice, whole number, yes or no, a model inside, a list as JSON; what may be left out is left out."""
    fill(db, panel_graphs.ask, {}, "ask-1")
    with studio(db, f"{PANELS}:ask") as served, page_on(launched, served.at("/run/ask-1")) as page:
        form = question(page, "order")
        form.get_by_text("customer: ann").wait_for()
        form.get_by_role("combobox", name="Colour").click()
        page.get_by_role("option", name="blue").click()
        form.get_by_label("Quantity").fill("0")
        form.get_by_role("radio", name="no").click()
        form.get_by_role("group", name="Address").get_by_label("Street").fill("Elm")
        form.get_by_role("group", name="Address").get_by_label("Number").fill("12")
        form.get_by_label("Tags").fill('["a", "b"]')
        page.get_by_role("button", name="Answer order").click()
        form.get_by_role("alert").get_by_text("greater than or equal to 1").wait_for()
        form.get_by_label("Quantity").fill("3")
        page.get_by_role("button", name="Answer order").click()
        form.get_by_text("continue goes on").wait_for()
        press(page, "Continue to a breakpoint")
        stands(page, "completed")
    assert state_of(db, panel_graphs.ask, "ask-1").order == panel_graphs.Order(
        colour="blue",
        quantity=3,
        gift=False,
        address=panel_graphs.Address(street="Elm", number=12),
        tags=["a", "b"],
    )


def test_older_questions_and_read_only_studios_take_no_answer(launched: Any, db: str) -> None:
    """The form is shown, its buttons are off, and it says why."""
    fill(db, studio_graphs.questions, {"text": "shoes"}, "ask-1")

    async def answer() -> None:
        async with SqlCheckpoints(db) as store:
            await Executor(studio_graphs.questions, store).resume("ask-1", {"approve": "yes", "budget": 3})

    with (
        studio(db, f"{GRAPHS}:questions", "--read-only") as served,
        page_on(launched, served.at("/run/ask-1")) as page,
    ):
        page.locator(".sg-questions").get_by_text("read-only: it was started with --read-only").wait_for()
        assert page.get_by_role("button", name="Answer budget").is_disabled()
    stored(answer)
    with studio(db, f"{GRAPHS}:questions") as served, page_on(launched, served.at("/run/ask-1?cp=ask-1:2")) as page:
        page.get_by_text("asked at an older checkpoint").wait_for()
        assert page.get_by_role("button", name="Answer budget").is_disabled()
