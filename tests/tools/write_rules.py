"""Writes what is made of the rules anew, for a person to look at the difference: `python tests/tools/write_rules.py`.

That is docs/rules.md and tests/validation/golden/messages.txt.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Write both files."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from support.rules import GOLDEN, codes, line

    from graphagent.validation.catalogue import catalogue
    from runner.cli.rule import example_finding
    from runner.cli.rule_page import page

    GOLDEN.write_text("".join(f"{line(code)}\n" for code in codes()), encoding="utf-8")
    rules = catalogue()
    text = page(rules, {code: example_finding(rule) for code, rule in rules.items()})
    (ROOT / "docs" / "rules.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
