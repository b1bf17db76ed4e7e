"""The picture of a graph: a file that needs nothing else, or a part of a page that shows a run as it goes."""

from runner.picture.marks import STATES, Mark, State, edge_patch, mark_patch
from runner.picture.script import APPLY_JS
from runner.picture.svg import picture

__all__ = ["picture", "Mark", "State", "STATES", "mark_patch", "edge_patch", "APPLY_JS"]
