"""What can be said to the command that serves an agent; the docstring of the class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Stored


class OnLeave(StrEnum):
    """What becomes of a run whose client leaves before its end."""

    cancel = "cancel"
    detach = "detach"


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Stored):
    """Serve an agent over HTTP.

    Speaks the OpenAI chat protocol (/v1/chat/completions, /v1/models), with /healthz and /readyz beside it. Prints the
    address when it is ready. The first Ctrl-C (or TERM) takes no more requests and lets the runs that go on finish, the
    second cancels them. Without --db sessions are forgotten when it ends. At another address than that of this machine
    it needs --token, or --auth, which says who a request is from.
    """

    target: Annotated[
        str,
        Argument(
            metavar="MODULE:AGENT",
            show_default=False,
            help="Where the agent is: 'package.module:name' or 'file.py:name', the current directory first.",
        ),
    ]
    openai: Annotated[bool, Option("--openai", help="Speak the OpenAI protocol; default if none is named.")] = False
    agui: Annotated[bool, Option("--agui", help="Speak AG-UI, at /agui; needs graphagent[agui].")] = False
    ui: Annotated[bool, Option("--ui", help="Pages to talk with the agent, at /ui; needs graphagent[studio].")] = False
    app: Annotated[
        str | None, Option("--app", metavar="NAME", help="The app of the sessions; default: the agent's name.")
    ] = None
    model: Annotated[
        str | None, Option("--model", metavar="NAME", help="The agent's name as a model; default: its own.")
    ] = None
    host: Annotated[
        str, Option("--host", metavar="ADDRESS", help="The address to listen at; another one needs --token or --auth.")
    ] = "127.0.0.1"
    port: Annotated[int, Option("--port", min=0, max=65535, metavar="N", help="The port; 0: any that is free.")] = 8000
    token: Annotated[
        str | None,
        Option(
            "--token",
            envvar="GRAPHAGENT_SERVE_TOKEN",
            show_envvar=True,
            metavar="TEXT",
            help="What clients have to show; whoever has it is the same user.",
        ),
    ] = None
    auth: Annotated[
        str | None,
        Option("--auth", metavar="MODULE:HOOK", help="An async function: a request to its Identity, or None."),
    ] = None
    host_name: Annotated[
        list[str] | None,
        Option("--host-name", metavar="NAME", help="A name by which it is reached; repeat it."),
    ] = None
    cors: Annotated[
        list[str] | None, Option("--cors", metavar="ORIGIN", help="An origin whose pages may speak to it; repeat it.")
    ] = None
    on_leave: Annotated[
        OnLeave | None,
        Option(
            "--on-leave",
            help="What becomes of a run whose client closes the connection; default: OpenAI cancels "
            "it, AG-UI detaches.",
        ),
    ] = None
    grace: Annotated[
        float, Option("--grace", min=0, metavar="SECONDS", help="What runs have to finish when the server stops.")
    ] = 30.0
    most_runs: Annotated[int, Option("--most-runs", min=1, metavar="N", help="Runs at the same time.")] = 256
    most_runs_per_user: Annotated[
        int, Option("--most-runs-per-user", min=1, metavar="N", help="Runs of one user at the same time.")
    ] = 64
    most_bytes: Annotated[int, Option("--most-bytes", min=1, metavar="N", help="Bytes of a request.")] = 4_000_000
    most_tokens: Annotated[
        int | None, Option("--most-tokens", min=1, metavar="N", help="The highest max_tokens that clients may ask for.")
    ] = None
    parameter: Annotated[
        list[str] | None,
        Option("--parameter", metavar="NAME", help="A generation parameter that clients may set; default: all."),
    ] = None
