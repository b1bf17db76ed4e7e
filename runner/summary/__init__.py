"""Rolling summaries: when one is due, how it is made, and that no event is ever hidden that no summary covers."""

from runner.summary.checks import AllOf, AnyOf, ContextOver, Custom, EventsOver, SummaryCheck, TimeOver, TokensOver
from runner.summary.dynamic import DynamicSummarizer
from runner.summary.estimate import FULL_OR_WORTH_IT, PaysBack
from runner.summary.hooks import Draft, SummaryHooks
from runner.summary.policy import SummaryPolicy
from runner.summary.prompt import ForkPrompt, SummaryPrompt
from runner.summary.rolling import RollingSummary
from runner.summary.stats import SummaryStats
from runner.summary.summarizer import ModelSummarizer
from runner.summary.text import Formatters
from runner.summary.upkeep import SummaryOptions
from runner.summary.values import Attempt, Check, Made, Spent, Summarizer, SummaryContext, SummaryInput, Trigger
from runner.summary.workers import WorkerOptions

__all__ = [
    "SummaryOptions",
    "SummaryPolicy",
    "WorkerOptions",
    "RollingSummary",
    "SummaryStats",
    "ModelSummarizer",
    "DynamicSummarizer",
    "Summarizer",
    "SummaryInput",
    "SummaryContext",
    "Made",
    "Attempt",
    "Trigger",
    "Check",
    "Spent",
    "SummaryCheck",
    "ContextOver",
    "TokensOver",
    "EventsOver",
    "TimeOver",
    "PaysBack",
    "FULL_OR_WORTH_IT",
    "Custom",
    "AllOf",
    "AnyOf",
    "SummaryPrompt",
    "ForkPrompt",
    "Formatters",
    "SummaryHooks",
    "Draft",
]
