"""Which texts of a page in a browser are hard to read, by WCAG 2.2 (1.4.3): contrast below 4.5 to 1."""

from __future__ import annotations

from typing import Any

_JS = """(within) => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const c = [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
  const over = (top, below) => { const a = top.length > 3 ? top[3] : 1;
    return [0, 1, 2].map((i) => top[i] * a + below[i] * (1 - a)); };
  const paper = (e) => { const layers = []; for (; e; e = e.parentElement) {
      const c = channels(getComputedStyle(e).backgroundColor); layers.push(c);
      if (c.length === 3 || c[3] === 1) break; }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255]); };
  const own = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  return [...document.querySelectorAll(within)].filter((e) => !e.closest("svg, [disabled], [aria-disabled=true]")
      && e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && own(e)).map((e) => {
    const below = paper(e), a = light(over(channels(getComputedStyle(e).color), below)), b = light(below);
    return [Math.round(100 * (Math.max(a, b) + .05) / (Math.min(a, b) + .05)) / 100, e.textContent.trim().slice(0, 40)];
  }).filter(([ratio]) => ratio < 4.5);
}"""


def hard_to_read(page: Any, within: str = "body *") -> list[tuple[float, str]]:
    """Ratio and text of every visible text below 4.5 to 1. What can't be used (disabled) is exempt, as in WCAG."""
    found: list[tuple[float, str]] = page.evaluate(_JS, within)
    return found
