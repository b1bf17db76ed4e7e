"""What a model sees: sessions projected into messages by a chain of pure steps. The record is never rewritten."""

from graphagent.agents.placeholders import Rendered, Values, artifact_names, render
from processors.assemble import assemble
from processors.attachments import Attachments
from processors.compaction import Compaction
from processors.explain import Entry, Explanation, explain, explain_projection
from processors.history import HistoryLimit
from processors.instructions import Instructions
from processors.pairing import Pairing
from processors.pipeline import Pipeline, default_pipeline
from processors.projection import SEED_HISTORY, Block, Budget, Given, Line, Note, Projection, Reader, Step
from processors.projector import INCLUDE_CONTENTS, Preload, SessionProjector
from processors.recall import Recall
from processors.sanitise import Sanitise, sanitise
from processors.seen import Seen, seen_by
from processors.summary import Summaries
from processors.visibility import FULL_CONTEXT, ISOLATED_INVOCATION, ISOLATED_REQUEST, REQUEST_CONTEXT, Visibility
from processors.voice import Voice

__all__ = [
    "FULL_CONTEXT",
    "INCLUDE_CONTENTS",
    "ISOLATED_INVOCATION",
    "ISOLATED_REQUEST",
    "REQUEST_CONTEXT",
    "SEED_HISTORY",
    "Attachments",
    "Block",
    "Budget",
    "Compaction",
    "Entry",
    "Explanation",
    "Given",
    "HistoryLimit",
    "Instructions",
    "Line",
    "Note",
    "Pairing",
    "Pipeline",
    "Preload",
    "Projection",
    "Reader",
    "Recall",
    "Rendered",
    "Sanitise",
    "Seen",
    "SessionProjector",
    "Step",
    "Summaries",
    "Values",
    "Visibility",
    "Voice",
    "artifact_names",
    "assemble",
    "default_pipeline",
    "explain",
    "explain_projection",
    "render",
    "sanitise",
    "seen_by",
]
