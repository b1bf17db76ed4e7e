"""Language models: LiteLLM, scripted, recorded, failover."""

from graphagent.models.failover import FailoverModel
from graphagent.models.hedge import HedgeModel
from graphagent.models.litellm_model import LiteLLMModel, Profile
from graphagent.models.recorded import RecordedModel
from graphagent.models.scripted import Item, ScriptedModel

__all__ = ["FailoverModel", "HedgeModel", "Item", "LiteLLMModel", "Profile", "RecordedModel", "ScriptedModel"]
