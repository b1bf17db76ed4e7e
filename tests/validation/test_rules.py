"""Every rule: a smallest graph that breaks it, a near miss, its message, its page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.graphs import flow
from support.rules import GOLDEN, IN_PYTHON, OF_PAIRS, codes, fails, line, passes, shown

from graphagent.errors import UsageError
from graphagent.validation import registry, validate
from graphagent.validation.catalogue import catalogue, families, matching
from runner.cli.rule import example_finding
from runner.cli.rule_page import page

CODES = codes()
PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
REWRITE = "if that is meant: python tests/tools/write_rules.py"


@pytest.mark.parametrize("code", CODES)
def test_the_failing_example_breaks_the_rule(code: str) -> None:
    """The smallest graph of the rule has a finding with its code."""
    assert code in [finding.code for finding in fails(code).findings]


@pytest.mark.parametrize("code", CODES)
def test_the_near_miss_does_not(code: str) -> None:
    """The graph beside it has none."""
    assert code not in [finding.code for finding in passes(code).findings]


@pytest.mark.parametrize("code", CODES)
def test_the_message_is_the_known_one(code: str) -> None:
    """The message of the failing example is that of the golden file."""
    assert line(code) in GOLDEN.read_text("utf-8").splitlines(), REWRITE


def test_the_golden_file_has_a_line_for_each_rule() -> None:
    """No rule is missing, and none is there that is gone."""
    assert [text.split()[0] for text in GOLDEN.read_text("utf-8").splitlines()] == CODES, REWRITE


@pytest.mark.parametrize("code", CODES)
def test_a_message_names_the_culprit(code: str) -> None:
    """One sentence without a full stop, with one of the places concerned in single quotes."""
    finding = shown(code)
    assert finding is not None
    assert not finding.message.endswith(".")
    assert not finding.at or any(f"'{name}'" in finding.message for name in finding.at)


@pytest.mark.parametrize("code", sorted(catalogue()))
def test_a_rule_says_what_it_is_about(code: str) -> None:
    """A title, an explanation in sentences, and examples where the notation has them."""
    rule = catalogue()[code]
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.explain.endswith((".", ".)"))
    assert bool(rule.fails) == bool(rule.passes)
    assert rule.fails or code in IN_PYTHON or code in OF_PAIRS


def test_the_page_is_up_to_date() -> None:
    """docs/rules.md is what the rules make of it."""
    rules = catalogue()
    made = page(rules, {code: example_finding(rule) for code, rule in rules.items()})
    assert PAGE.read_text("utf-8") == made, REWRITE


def test_patterns_name_rules() -> None:
    """A code, or the beginning of some; what names none is refused with the nearest."""
    assert matching(("GA00",)) >= {"GA001", "GA009"}
    assert matching(("GA301",)) == {"GA301"}
    with pytest.raises(UsageError, match="no rule 'GA03x': did you mean 'GA"):
        matching(("GA03x",))


PLUGIN = """
from graphagent.validation import Family, Rule

def check(subject):
    for name in subject.graph.names:
        if name.isupper():
            yield subject.finding("{code}", f"node '{{name}}' shouts", (name,))

family = Family("style", (Rule("{code}", "a shouting id", "warning", "Ids are read often."),), check)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, and catalogues that are made anew."""
    monkeypatch.syspath_prepend(str(tmp_path))
    for cached in (families, catalogue):
        cached.cache_clear()
    yield tmp_path
    sys.modules.pop("shouting", None)
    for cached in (families, catalogue):
        cached.cache_clear()


def install(folder: Path, code: str) -> None:
    """What an installed package with a rule looks like."""
    (folder / "shouting.py").write_text(PLUGIN.format(code=code))
    info = folder / "shouting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\nstyle = shouting:family\n")


def test_an_installed_package_adds_rules(plugin: Path) -> None:
    """A rule family behind the entry point is checked, and can be selected by its code, like those of graphagent."""
    install(plugin, "XY101")
    graph = flow("START -> plan -> WORK -> END").compile()
    found = [finding for finding in validate(graph).findings if finding.code == "XY101"]
    assert [(finding.at, finding.severity) for finding in found] == [(("WORK",), "warning")]
    assert [finding.code for finding in validate(graph, rules=["XY"]).findings] == ["XY101"]
    assert "XY101" not in [finding.code for finding in validate(graph, ignore=["XY1"]).findings]


def test_two_rules_with_one_code_are_refused(plugin: Path) -> None:
    """A plugin that claims a code that is taken is named with both titles."""
    install(plugin, "GA301")
    with pytest.raises(UsageError, match=r"two rule families define 'GA301'.*a shouting id"):
        catalogue()
