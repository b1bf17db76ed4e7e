"""What a function does with the state, read from its source: an abstract run that follows which names hold the state
and which keys its mappings have."""

from graphagent.validation.inference.reads import Inferred
from graphagent.validation.inference.run import infer

__all__ = ["Inferred", "infer"]
