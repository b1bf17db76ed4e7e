"""What a call of a model costs, looked up without a network: what was registered, then litellm's list.

A price that isn't known stays unknown: an unlisted model, or one whose list row has no price per token, costs None.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from graphagent.ledger import TokenUsage
from graphagent.models.litellm_import import load_litellm


class Price(NamedTuple):
    """US dollars per token. `cached`: of input tokens that the provider had at hand; None costs what others do."""

    input: float
    output: float
    cached: float | None = None


_registered: dict[str, Price] = {}
_PER_TOKEN = ("input_cost_per_token", "output_cost_per_token")


def register_price(name: str, price: Price) -> None:
    """Say what a model costs, by the name that the model object has. Raises ValueError for a price below 0."""
    if min(part for part in price if part is not None) < 0:
        raise ValueError(f"the price of '{name}' must be 0 or more, not {price}")
    _registered[name.lower()] = price


def cost_of(model: str, usage: TokenUsage) -> float | None:
    """US dollars for a call that took these tokens; None if the price is not known. The first lookup of a model that
    was not registered imports litellm."""
    price = _registered.get(model.lower())
    if price is None:
        return _listed(model, usage)
    cached = min(usage.cached_tokens, usage.input_tokens)
    at_hand = price.input if price.cached is None else price.cached
    return (usage.input_tokens - cached) * price.input + cached * at_hand + usage.output_tokens * price.output


def _listed(model: str, usage: TokenUsage) -> float | None:
    """By litellm's list, which knows tiers and what is cached. Its functions take a missing price for 0, and ask a
    server about models of some providers, so the row is looked at first."""
    litellm: Any = load_litellm()
    row = _row(litellm.model_cost, model)
    prices = [row.get(name) for name in _PER_TOKEN]
    if None in prices:
        return None
    if not any(prices):
        return 0.0
    with suppress(Exception):  # litellm raises plain Exception for what it doesn't know
        asked, answered = litellm.cost_per_token(
            model=model,
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            cache_read_input_tokens=usage.cached_tokens,
        )
        return float(asked + answered)
    return None


def _row(rows: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    """The row of a model: under its whole name, or without the provider if the row says the same one; else empty."""
    provider, _, bare = model.partition("/")
    found: Mapping[str, Any] = rows.get(model) or rows.get(bare) or {}
    return found if model in rows or found.get("litellm_provider") == provider else {}
