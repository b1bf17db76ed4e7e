"""Every text of the studio can be read, in light and dark."""

from __future__ import annotations

from typing import Any

import pytest
from browser import Shared, page_on
from support.contrast import hard_to_read

PAGES = {
    "runs": "/",
    "run": "/run/fail-1",
    "node": "/run/order%2F1%3F?node=read",
    "compare": "/compare?a=order%2F1%3F&b=fail-1",
}


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_text_has_the_contrast_of_wcag_aa(launched: Any, shared: Shared, name: str, dark: bool) -> None:
    """At least 4.5 to 1 for each text that is seen, on each tab of a run."""
    with page_on(launched, shared.at(PAGES[name]), dark=dark) as page:
        page.wait_for_timeout(500)
        assert hard_to_read(page) == []
        for tab in page.get_by_role("tab").all() if name in ("run", "node") else ():
            if tab.is_visible():
                tab.click()
                page.wait_for_timeout(200)
                assert hard_to_read(page) == []


def test_what_is_hard_to_read_is_found(launched: Any) -> None:
    """The measure itself: grey on white is found, also under a layer that lets light through; black isn't."""
    page = launched.new_page()
    page.set_content(
        "<body style='background: white'><p style='color: #999'>grey</p><p style='color: black'>black</p>"
        "<div style='background: rgba(0, 0, 0, 0.5)'><p style='color: #777'>layer</p></div></body>"
    )
    assert [text for _, text in hard_to_read(page)] == ["grey", "layer"]
    page.close()
