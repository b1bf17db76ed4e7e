"""The style sheet of the studio: colours by name for light and dark, and the frame that its pages share."""

from __future__ import annotations

COLOURS_LIGHT = {
    "page": "#f5f6f8",
    "panel": "#ffffff",
    "text": "#1b1f24",
    "muted": "#57606a",
    "line": "#c9d1d9",
    "control": "#6e7781",
    "accent": "#0757b8",
    "on-accent": "#ffffff",
    "added": "#0f6b2d",
    "added-fill": "#dff5e4",
    "removed": "#a11423",
    "removed-fill": "#fde8e9",
    "warn": "#7a4b00",
    "warn-fill": "#fff3d6",
    "bad": "#a8071a",
    "good": "#0f6b2d",
    "row-hover": "#eef1f5",
    "row-now": "#dbe9fb",
    "focus": "#0757b8",
}
"""Text on `page`, `panel` and the fills has a contrast of 4.5 at the least (WCAG 2.2, 1.4.3)."""

COLOURS_DARK = {
    "page": "#0f1318",
    "panel": "#171c23",
    "text": "#e4e8ed",
    "muted": "#a3adb8",
    "line": "#343c46",
    "control": "#838d98",
    "accent": "#7db4ff",
    "on-accent": "#0b1a2c",
    "added": "#7ee096",
    "added-fill": "#12301b",
    "removed": "#ff9b9b",
    "removed-fill": "#3a171a",
    "warn": "#f1c26b",
    "warn-fill": "#33270d",
    "bad": "#ff9b9b",
    "good": "#7ee096",
    "row-hover": "#212831",
    "row-now": "#1d3552",
    "focus": "#7db4ff",
}
