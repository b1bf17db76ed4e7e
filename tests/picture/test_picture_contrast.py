"""Contrast in both themes, computed from the style sheet as a browser reads it (WCAG 2.2, relative luminance)."""

from __future__ import annotations

import re

import pytest

from runner.picture import STATES
from runner.picture.style import KIND_FILLS, style_sheet

SHEET = style_sheet()
THEMES = {
    "light": r"^\.ga-picture\{(--[^}]*)\}",
    "dark": r"\(prefers-color-scheme:dark\)\{\.ga-picture\{(--[^}]*)\}",
    "light, chosen": r"\[data-theme=light\]\{(--[^}]*)\}",
    "dark, chosen": r"\[data-theme=dark\]\{(--[^}]*)\}",
}
FILLS = ["node", *dict.fromkeys(KIND_FILLS.values()), *(f"{state}-fill" for state in ("running", "failed", "waiting"))]
FRAMES = [state for state in STATES if state != "idle"]


def colours(theme: str) -> dict[str, str]:
    """The custom properties of a theme."""
    (block,) = re.findall(THEMES[theme], SHEET, re.MULTILINE)
    return dict(re.findall(r"--ga-([a-z-]+):(#[0-9a-f]{6});", block))


def luminance(colour: str) -> float:
    """The relative luminance of a colour in sRGB, 0 for black to 1 for white."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """From 1 for the same colour to 21 for black on white."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def test_the_formula() -> None:
    """Black on white has 21, a colour on itself 1, and the grey that is known to just pass 4.5."""
    assert round(contrast("#000000", "#ffffff"), 2) == 21
    assert contrast("#336699", "#336699") == 1
    assert 4.5 <= contrast("#767676", "#ffffff") < 4.55


@pytest.mark.parametrize("theme", THEMES)
def test_text_is_readable(theme: str) -> None:
    """Names on every fill, labels on the page and the texts of badges on the colours of states: 4.5 and more."""
    have = colours(theme)
    pairs = [("text", fill) for fill in (*FILLS, "page")] + [("on-badge", state) for state in STATES]
    assert {pair: found for pair in pairs if (found := contrast(have[pair[0]], have[pair[1]])) < 4.5} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_strokes_that_mean_something_can_be_seen(theme: str) -> None:
    """Lines, frames of states on page and fill, badges, dots, rings: 3 and more with what is beside them."""
    have = colours(theme)
    pairs = [(frame, ground) for frame in (*FRAMES, "line") for ground in (*FILLS, "page")]
    pairs += [(name, "page") for name in ("line", "error", "taken", "stop", "selected", "focus", "idle")]
    pairs += [("stop", fill) for fill in FILLS]
    assert {pair: found for pair in pairs if (found := contrast(have[pair[0]], have[pair[1]])) < 3} == {}


def test_a_chosen_theme_is_that_of_the_scheme() -> None:
    """Dark by choice and dark by the reader's scheme are the same colours; every property has a value in both."""
    assert colours("light") == colours("light, chosen")
    assert colours("dark") == colours("dark, chosen")
    assert colours("light").keys() == colours("dark").keys()


def test_every_colour_is_a_property_with_a_plain_value_beside_it() -> None:
    """All rules paint by properties that exist; the plain value before each is that of the light theme."""
    have = colours("light")
    painted = re.findall(r"(fill|stroke|background):(#[0-9a-f]{6});\1:var\(--ga-([a-z-]+)\)", SHEET)
    assert {name for _, _, name in painted} == set(have)
    assert all(have[name] == plain for _, plain, name in painted)
    assert len(re.findall(r"var\(", SHEET)) == len(painted)
