"""What the projection left out, found again: tools that search and read sessions, evidence fetched beforehand."""

from runner.recall.load import Place, load
from runner.recall.preload import RecallPreload
from runner.recall.search import Found, Scope, Searcher, Wanted
from runner.recall.snippets import Bounds
from runner.recall.tools import SessionRecall, recall_tools

__all__ = [
    "Bounds",
    "Found",
    "Place",
    "RecallPreload",
    "Scope",
    "Searcher",
    "SessionRecall",
    "Wanted",
    "load",
    "recall_tools",
]
