"""How many tokens a model takes, looked up without a network: what was registered, then litellm's list, then a table.

litellm's list is read as the file that it is; importing litellm for it would take seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_LIST = "model_prices_and_context_window_backup.json"
_FAMILIES = {
    "claude": 200_000,
    "deepseek": 131_072,
    "gemini": 1_048_576,
    "glm-4": 131_072,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 272_000,
    "kimi-k2": 262_144,
    "llama-3": 8_192,
    "llama-3.1": 131_072,
    "mistral": 32_768,
    "o3": 200_000,
    "qwen3": 131_072,
    "smollm2": 8_192,
}
_registered: dict[str, int] = {}


def register_context_window(name: str, tokens: int) -> None:
    """Say how many tokens a model takes; it counts for names that begin with `name` too. Raises ValueError for a
    number below 1."""
    if tokens < 1:
        raise ValueError(f"the context window of '{name}' must be at least 1 token, not {tokens}")
    _registered[name.lower()] = tokens


def context_window(model: str) -> int | None:
    """Tokens that a request to a model may have; None if not known.

    The name counts without regard to case, with and without the provider before the slash. A known name stands for
    longer ones that go on with `-`, `@` or `:`, the longest known one first.
    """
    name = model.lower()
    bare = name.rpartition("/")[2]
    for candidate in (name, bare, *_shorter(name), *_shorter(bare)):
        for known in (_registered, _listed(), _FAMILIES):
            if candidate in known:
                return known[candidate]
    return None


def _shorter(name: str) -> Iterator[str]:
    """The beginnings of a name that end before a separator, longest first."""
    for end in range(len(name) - 1, 0, -1):
        if name[end] in "-@:":
            yield name[:end]


@cache
def _listed() -> dict[str, int]:
    """Window by name, and by name without provider: the smallest, where providers differ. Empty without litellm."""
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        return {}
    try:
        rows = json.loads((Path(spec.origin).parent / _LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # another version of litellm, which keeps its list elsewhere
        return {}
    whole: dict[str, int] = {}
    bare: dict[str, int] = {}
    for name, row in rows.items():
        tokens = row.get("max_input_tokens") or row.get("max_tokens")
        if isinstance(tokens, int) and row.get("mode") in ("chat", "completion", "responses"):
            whole[name.lower()] = tokens
            last = name.lower().rpartition("/")[2]
            bare[last] = min(tokens, bare.get(last, tokens))
    return bare | whole
