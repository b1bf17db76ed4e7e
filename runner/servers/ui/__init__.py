"""A page to talk with the agent that is served."""

from runner.servers.ui.part import ChatPages

__all__ = ["ChatPages"]
