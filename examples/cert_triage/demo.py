"""The demo: makes faulty certificates, triages each, and takes one from the question to the script.

Run it with `python -m examples.cert_triage.demo` (or `make demo`); everything it writes goes to `demo-out/`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console
from rich.markdown import Markdown
from rich.prompt import Confirm
from rich.table import Table

from examples.cert_triage.graph import graph
from examples.cert_triage.samples import Sample, make_samples
from graphagent import Executor, RunResult, SqlCheckpoints

FOLDER = Path("demo-out")
DATABASE = f"sqlite:///{(FOLDER / 'demo.db').as_posix()}"
COLOURS = {"ok": "green", "warning": "yellow", "critical": "red"}
NEXT = {
    "Step through it": f"graphagent history {{lineage}} --db {DATABASE}",
    "Check that the graph still goes the way the run went": "graphagent replay {lineage} "
    f"--graph examples.cert_triage.graph:graph --db {DATABASE}",
    "Break it (edit the host in the file first)": "graphagent run examples.cert_triage.graph:graph "
    f"--input {FOLDER.as_posix()}/healthy.json",
}


@dataclass(frozen=True)
class Options:
    """What the command line says; `answer` is None when it gives none."""

    sample: str
    answer: str | None
    as_json: bool


@dataclass(frozen=True)
class Outcome:
    """All triages as they stopped first, and the chosen one as it ended (still open when nobody answered)."""

    first: dict[str, RunResult]
    chosen: RunResult


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status of the process."""
    parser = argparse.ArgumentParser(prog="python -m examples.cert_triage.demo", description=__doc__)
    parser.add_argument("--sample", default="leaf-last", help="the critical sample to take to its end (leaf-last)")
    parser.add_argument("--answer", choices=["approve=yes", "approve=no"], help="answer instead of being asked")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    given = parser.parse_args(arguments)
    options = Options(given.sample, given.answer.partition("=")[2] if given.answer else None, given.json)
    samples = {one.name: one for one in make_samples(FOLDER, datetime.now(UTC).replace(microsecond=0))}
    critical = [name for name, one in samples.items() if one.verdict == "critical"]
    if options.sample not in critical:
        parser.error(f"sample '{options.sample}' is not one of the critical ones: {', '.join(critical)}")
    console = Console(highlight=False)
    outcome = anyio.run(triage_all, samples, options, console)
    if options.as_json:
        print(json.dumps(as_data(outcome, options), indent=2))
    else:
        show_end(console, outcome, options)
    return 0


async def triage_all(samples: dict[str, Sample], options: Options, console: Console) -> Outcome:
    """Triage every sample in a lineage of its name, then answer the question of the chosen one."""
    async with SqlCheckpoints(DATABASE) as store:
        executor = Executor(graph, checkpoints=store)
        first = {}
        for name, sample in samples.items():
            await executor.delete(name)
            first[name] = await executor.run(sample.inputs(out_dir=str(FOLDER)), lineage=name)
        if not options.as_json:
            show_table(console, first)
        chosen = first[options.sample]
        answer = options.answer or (None if options.as_json else ask(console, chosen))
        if answer is not None:
            chosen = await executor.resume(options.sample, {"approve": answer})
        return Outcome(first, chosen)


def ask(console: Console, waiting: RunResult) -> str | None:
    """The person's answer to the pending question; None where there is no terminal to ask at."""
    prompt: dict[str, Any] = waiting.interrupts[0].prompt
    console.print(f"\n[bold]{prompt['question']}[/]")
    for reason in prompt["critical"]:
        console.print(f"  - {reason}", style=COLOURS["critical"], markup=False)
    if not sys.stdin.isatty():
        return None
    return "yes" if Confirm.ask("Approve?", console=console) else "no"


def show_table(console: Console, results: dict[str, RunResult]) -> None:
    """One line a sample: verdict, reasons, and where the run stands."""
    table = Table(title="Nine certificates, one graph", title_justify="left")
    for heading in ("sample", "verdict", "finding", "run"):
        table.add_column(heading)
    for name, result in results.items():
        verdict = result.state.severity
        reasons = [one.code for one in result.state.findings if one.severity != "info"]
        run = "waits for 'approve'" if result.status == "interrupted" else result.status
        table.add_row(name, f"[{COLOURS[verdict]}]{verdict}[/]", ", ".join(reasons) or "-", run)
    console.print(table)


def show_end(console: Console, outcome: Outcome, options: Options) -> None:
    """The report of the chosen sample, the picture of the graph, and what to try next."""
    if outcome.chosen.status == "interrupted":
        console.print("\nNobody to ask here: the run waits. Answer with --answer approve=yes or approve=no.")
    else:
        text = Path(outcome.chosen.state.report).read_text(encoding="utf-8")
        console.print()
        console.print(Markdown(text) if console.is_terminal else text, markup=False, soft_wrap=not console.is_terminal)
    console.rule("The graph (Mermaid)")
    console.print(graph.to_mermaid(), markup=False, soft_wrap=True)
    console.rule("Try next")
    for what, command in next_steps(options).items():
        console.print(f"{what}:\n    {command}", markup=False, soft_wrap=True)


def next_steps(options: Options) -> dict[str, str]:
    """Commands that go on from here, by what they are for."""
    return {what: command.format(lineage=options.sample) for what, command in NEXT.items()}


def as_data(outcome: Outcome, options: Options) -> dict[str, Any]:
    """The same as data."""
    state = outcome.chosen.state
    return {
        "samples": {
            name: {
                "verdict": result.state.severity,
                "findings": [one.code for one in result.state.findings],
                "status": result.status,
            }
            for name, result in outcome.first.items()
        },
        "chosen": {
            "sample": options.sample,
            "status": outcome.chosen.status,
            "script": state.script,
            "report": state.report,
        },
        "graph": graph.to_mermaid(),
        "next": next_steps(options),
    }


if __name__ == "__main__":
    raise SystemExit(main())
