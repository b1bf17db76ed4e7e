"""The command `graphagent`: which commands there are, and how one is found and called."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from runner.cli import change_options as change
from runner.cli import coverage_options as coverage
from runner.cli import debug_options as debugging
from runner.cli import options as said
from runner.cli import report_options as reporting
from runner.cli import runs_options as searched
from runner.cli import serve_options as serving
from runner.cli import studio_options as browsing
from runner.cli import talk_options as talk
from runner.cli import upkeep_options as upkeep

COMMANDS: dict[str, tuple[type[said.Common], str]] = {
    "run": (said.RunOptions, "runner.cli.run:run"),
    "resume": (said.ResumeOptions, "runner.cli.run:resume"),
    "chat": (talk.ChatOptions, "runner.cli.chat:chat"),
    "sessions": (talk.SessionsOptions, "runner.cli.sessions:sessions"),
    "studio": (browsing.StudioOptions, "runner.cli.studio:studio"),
    "serve": (serving.ServeOptions, "runner.cli.serve:serve"),
    "debug": (debugging.DebugOptions, "runner.cli.debug:debug"),
    "runs": (searched.RunsOptions, "runner.cli.runs:runs"),
    "history": (said.HistoryOptions, "runner.cli.stored:history"),
    "state": (said.StateOptions, "runner.cli.stored:state"),
    "diff": (said.DiffOptions, "runner.cli.stored:diff"),
    "interrupts": (said.InterruptsOptions, "runner.cli.stored:interrupts"),
    "explain": (said.ExplainOptions, "runner.cli.travel:explain"),
    "replay": (said.ReplayOptions, "runner.cli.travel:replay"),
    "report": (reporting.ReportOptions, "runner.cli.report:report"),
    "fork": (said.ForkOptions, "runner.cli.travel:fork"),
    "edit": (said.EditOptions, "runner.cli.travel:edit"),
    "prune": (upkeep.PruneOptions, "runner.cli.upkeep:prune"),
    "delete": (upkeep.DeleteOptions, "runner.cli.upkeep:delete"),
    "store": (upkeep.StoreOptions, "runner.cli.store:store"),
    "graph": (said.GraphOptions, "runner.cli.picture:graph"),
    "check": (said.CheckOptions, "runner.cli.check:check"),
    "simulate": (coverage.SimulateOptions, "runner.cli.simulate:simulate"),
    "export": (coverage.ExportOptions, "runner.cli.export:export"),
    "cover": (coverage.CoverOptions, "runner.cli.cover:cover"),
    "rule": (said.RuleOptions, "runner.cli.rule:rule"),
    "lock": (change.LockOptions, "runner.cli.lock:lock"),
    "compat": (change.CompatOptions, "runner.cli.compat:compat"),
}
"""Name of a command -> its options and where its function is: `function(options, output) -> exit status`."""

HELP = """Run, inspect and mend graphs of graphagent.

Exit status: 0 completed, 1 failed, 2 misuse, 3 waits for an answer, 4 limit reached or stalled, 5 cancelled.
"""


def main() -> None:
    """Run the command that the arguments of the process name; ends the process with its exit status."""
    app()


def make_app() -> typer.Typer:
    """The application with all commands."""
    made = typer.Typer(
        name="graphagent",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(help=HELP)(_global)
    for name, (options, place) in COMMANDS.items():
        made.command(name, help=inspect.getdoc(options))(_callback(options, place))
    return made


def _engine_side() -> Any:
    """The part that knows the engine; imported when a command is called, not when its help is shown."""
    return importlib.import_module("runner.cli.invoke")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"graphagent {_engine_side().version()}")
        raise typer.Exit


def _global(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and leave."),
    ] = False,
) -> None:
    """Options before the command; each is done with when it is met."""


def _callback(options: type[said.Common], place: str) -> Callable[..., None]:
    """What typer calls: a function whose parameters are the fields of the options."""

    def call(**given: Any) -> None:
        raise typer.Exit(_engine_side().invoke(place, options(**given)))

    call.__signature__ = inspect.Signature(_parameters(options))  # type: ignore[attr-defined]
    return call


def _parameters(options: type[said.Common]) -> list[inspect.Parameter]:
    """The fields as parameters, those of the class itself before those of its bases."""
    hints = get_type_hints(options, include_extras=True)
    names = [name for base in options.__mro__ for name in inspect.get_annotations(base)]
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=getattr(options, name, inspect.Parameter.empty),
            annotation=hints[name],
        )
        for name in names
    ]


app = make_app()
