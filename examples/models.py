"""Which model an example talks to: a script, the small local one, or any that litellm knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from graphagent.agents import Model, ModelRequest
from graphagent.models import Item, LiteLLMModel, ScriptedModel
from graphagent.models.local import local_model

HELP = "'local' (after 'make local-model'), or litellm's name for a model, such as 'openai/gpt-4o'; default: a script"


def scripted(script: Callable[[ModelRequest], Item]) -> Model:
    """A model that answers by a script: with no key, no network, and always the same."""
    return ScriptedModel(script, keep_requests=False)


@contextmanager
def chosen_model(name: str | None, script: Callable[[ModelRequest], Item]) -> Iterator[Model]:
    """The model that `--model` names, while the block runs. Raises ModelError if the local one is not installed."""
    if name == "local":
        with local_model() as model:
            yield model
    else:
        yield scripted(script) if name is None else LiteLLMModel(name)
