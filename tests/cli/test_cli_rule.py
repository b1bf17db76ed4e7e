"""`graphagent rule`: one rule with its example, all rules, the page, and a code that there isn't."""

from __future__ import annotations

from cli_help import Call

from graphagent.validation.catalogue import catalogue


def test_a_rule_is_explained_with_what_it_reports(call: Call) -> None:
    """Title, severity, explanation, both examples, and the finding with its trace and mend; in any case of letters."""
    for code in ("GA301", "ga301"):
        done = call("rule", code)
        assert done.code == 0
        rule = catalogue()["GA301"]
        first, *_ = done.out.splitlines()
        assert first == f"GA301 error: {rule.title}"
        for text in (*rule.fails.splitlines(), *rule.passes.splitlines()):
            assert f"    {text}\n" in done.out
        for text in ("join 'j' can wait for ever for 'b'", "trace: r=a; a", "fix: "):
            assert text in done.out


def test_without_a_code_all_rules_are_listed(call: Call) -> None:
    """A line for each, with severity and title."""
    done = call("rule")
    assert done.code == 0
    assert all(code in done.out for code in catalogue())


def test_json_has_the_rule_and_its_finding(call: Call) -> None:
    """One rule is an object, all of them a list without findings."""
    shown = call("rule", "GA006", "--json").data
    assert (shown["code"], shown["severity"]) == ("GA006", "error")
    assert shown["finding"]["message"].startswith("an edge from 'plan' leads to 'wrok'")
    assert [rule["code"] for rule in call("rule", "--json").data] == list(catalogue())


def test_a_rule_without_an_example_is_explained(call: Call) -> None:
    """A rule that is about functions has no graph in the notation."""
    done = call("rule", "GA016")
    assert done.code == 0
    assert "fails:" not in done.out


def test_markdown_of_one_rule_is_its_section(call: Call) -> None:
    """The same text as in docs/rules.md."""
    done = call("rule", "GA301", "--format", "markdown")
    assert done.out.startswith("## GA301\n\n**A join can wait for ever** (error)\n")


def test_an_unknown_code_is_misuse(call: Call) -> None:
    """Exit 2 with the nearest rule."""
    done = call("rule", "GA3O1")
    assert done.code == 2
    assert "no rule 'GA3O1': did you mean 'GA301'" in done.err
