"""Every rule that is known: the families of graphagent and those of plugins, by code."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from graphagent.errors import UsageError, alternatives
from graphagent.validation import allowing, behaviour, compat_rules, data, definition, limits, policy, structure
from graphagent.validation.registry import Family, Rule, plugins

OWN: tuple[Family, ...] = (
    definition.FAMILY,
    structure.FAMILY,
    behaviour.FAMILY,
    data.FAMILY,
    policy.FAMILY,
    limits.FAMILY,
)


@cache
def families() -> tuple[Family, ...]:
    """Own families first, then those of plugins."""
    return (*OWN, *plugins())


@cache
def catalogue() -> Mapping[str, Rule]:
    """Rules by code, in order. Raises UsageError if two families claim one code."""
    found: dict[str, Rule] = {}
    checked = [rule for family in families() for rule in family.rules]
    for rule in (*checked, *compat_rules.RULES, *allowing.RULES):
        if rule.code in found:
            raise UsageError(f"two rule families define '{rule.code}': '{found[rule.code].title}' and '{rule.title}'")
        found[rule.code] = rule
    return dict(sorted(found.items()))


def matching(patterns: tuple[str, ...]) -> frozenset[str]:
    """The codes that patterns name: a code, or the beginning of some (`GA3`). Raises UsageError for one without any."""
    found: set[str] = set()
    for pattern in patterns:
        codes = [code for code in catalogue() if code.startswith(pattern)]
        if not codes or not pattern:
            raise UsageError(f"no rule '{pattern}': {alternatives(pattern, catalogue())}")
        found.update(codes)
    return frozenset(found)
