"""The pages of a server in a real browser: `graphagent serve --ui`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.browsing import chromium, page_on, wide_page
from support.contrast import hard_to_read
from support.serving import Server, served

AGENTS = Path(__file__).with_name("page_agents.py")


@pytest.fixture(scope="module")
def launched() -> Iterator[Any]:
    """A headless browser."""
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that lets go of the tool `hold`, once it is there."""
    return tmp_path_factory.mktemp("gate") / "open"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[Server]:
    """A server with pages and a database, for one user."""
    folder = tmp_path_factory.mktemp("pages")
    with served(folder, "bob", "--ui", "--openai", "--db", "pages.db", agents=AGENTS, GATE=str(gate)) as up:
        yield up


def say(page: Any, text: str) -> None:
    """Say something in a talk."""
    page.get_by_label("Message").fill(text)
    page.keyboard.press("Enter")


def test_a_talk_with_questions_steps_and_a_file(launched: Any, pages: Server) -> None:
    """Text comes, two parallel questions are answered at once, the file is saved by the browser, never shown by it."""
    with page_on(launched, f"{pages.url}/ui") as page:
        page.get_by_role("link", name="New talk").click()
        say(page, "good day")
        page.get_by_text("You said: good day").wait_for()
        say(page, "drop it,all")
        page.get_by_text("waits for an answer").wait_for()
        assert hard_to_read(page) == []
        answers = page.get_by_role("radio", name="yes")
        assert answers.count() == 2
        for one in answers.all():
            one.click()
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("it says: dropped all").wait_for()
        assert page.locator(".chat-steps li").all_inner_texts() == ["model", "tools", "model"]
        with page.expect_download() as saved:
            page.get_by_role("link", name="version 1").click()
        assert saved.value.suggested_filename == "note.html"
        assert Path(saved.value.path()).read_text() in ("dropped it", "dropped all")
        page.set_viewport_size({"width": 800, "height": 700})
        assert not wide_page(page)


def test_a_falsy_answer_is_an_answer_on_the_page(launched: Any, pages: Server) -> None:
    """No is said, and the agent hears it; an empty form is not sent."""
    with page_on(launched, f"{pages.url}/ui/talk/no") as page:
        say(page, "drop it")
        page.get_by_role("button", name="Answer").click()
        page.get_by_text("this is needed").wait_for()
        page.get_by_role("radio", name="no").click()
        page.get_by_role("button", name="Answer").click()
        page.locator(".chat-line.said", has_text="it says:").wait_for()
        assert "dropped" not in page.locator(".chat-log").inner_text()


def test_a_run_goes_on_without_its_page(launched: Any, pages: Server, gate: Path) -> None:
    """A page that is closed in mid-run, and another one: the second one shows the run, and its end as it comes."""
    gate.unlink(missing_ok=True)
    with page_on(launched, f"{pages.url}/ui/talk/long") as page:
        say(page, "hold on")
        page.get_by_text("bob calls").wait_for()
    with page_on(launched, f"{pages.url}/ui/talk/long") as page:
        page.get_by_text("running").wait_for()
        gate.touch()
        page.get_by_text("it says: let go").wait_for()
        page.reload()
        page.get_by_text("it says: let go").wait_for()


def test_a_run_is_stopped_by_its_page(launched: Any, pages: Server, gate: Path) -> None:
    """Stop ends the run; the talk goes on afterwards."""
    gate.unlink(missing_ok=True)
    with page_on(launched, f"{pages.url}/ui/talk/stop", dark=True) as page:
        say(page, "hold on")
        page.get_by_text("bob calls").wait_for()
        page.get_by_role("button", name="Stop").click()
        page.locator(".sg-chip", has_text="cancelled").wait_for()
        say(page, "still there?")
        page.get_by_text("You said: still there?").wait_for()
        assert hard_to_read(page) == []


def test_users_see_their_own_talks_only(launched: Any, tmp_path: Path) -> None:
    """Another user has neither the talk nor its file, and nobody has anything without saying who they are."""
    words = ("--ui", "--db", "users.db", "--auth", f"{AGENTS}:by_cookie")
    with served(tmp_path, "bob", *words, agents=AGENTS) as up:
        with page_on(launched, f"{up.url}/ui", connect=False) as page:
            page.get_by_text("wants its token").wait_for()
            page.context.add_cookies([{"name": "who", "value": "ann", "url": up.url}])
            page.goto(f"{up.url}/ui/talk/secret")
            say(page, "drop it")
            page.get_by_role("radio", name="yes").click()
            page.get_by_role("button", name="Answer").click()
            page.get_by_text("it says: dropped it").wait_for()
            page.context.add_cookies([{"name": "who", "value": "eve", "url": up.url}])
            page.goto(f"{up.url}/ui")
            page.get_by_text("Nothing was said yet.").wait_for()
            page.goto(f"{up.url}/ui/talk/secret")
            page.get_by_label("Message").wait_for()
            assert "dropped" not in page.locator(".chat-main").inner_text()
        file = f"{up.url}/ui/file?session=secret&name=note.html"
        asked = {who: httpx.get(file, cookies={"who": who}).status_code for who in ("ann", "eve")}
        assert asked == {"ann": 200, "eve": 404}
        assert httpx.get(file).status_code == 401
        for odd in ("name=note.html&version=7", "name=..%2Fnote.html", "name=", "name=%00", "version=x"):
            assert httpx.get(f"{up.url}/ui/file?session=secret&{odd}", cookies={"who": "ann"}).status_code == 404


def test_a_token_is_shown_once(launched: Any, tmp_path: Path) -> None:
    """With --token the page wants it, takes it from its address once, and keeps it in a cookie."""
    with served(tmp_path, "bob", "--ui", "--openai", "--token", "open sesame", agents=AGENTS) as up:
        assert httpx.get(f"{up.url}/ui/enter?token=wrong").status_code == 401
        with page_on(launched, f"{up.url}/ui/enter?token=open%20sesame") as page:
            assert page.url == f"{up.url}/ui"
            page.get_by_role("link", name="New talk").click()
            say(page, "hello")
            page.get_by_text("You said: hello").wait_for()
            held = {cookie["name"]: cookie for cookie in page.context.cookies()}["graphagent_serve"]
            assert held["httpOnly"]
            assert "sesame" not in held["value"]
        assert httpx.get(f"{up.url}/v1/models", cookies={"graphagent_serve": held["value"]}).status_code == 401


def test_sockets_of_other_pages_are_refused(pages: Server) -> None:
    """A page of another origin can neither speak to the pages' sockets nor read the pages."""
    socket = f"{pages.url}/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    assert httpx.get(socket, headers={**upgrade, "Origin": "https://evil.example"}).status_code == 403
    assert httpx.get(f"{pages.url}/ui", headers={"Origin": "https://evil.example"}).status_code == 403
    assert httpx.get(f"{pages.url}/ui", headers={"Host": "evil.example"}).status_code == 421
