"""What can be said to the commands that talk with agents; the docstring of a class is the command's help."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from typer import Argument, Option

from runner.cli.options import Stored

USER = "user"


class SessionsAction(StrEnum):
    """What is done with stored sessions."""

    list = "list"
    show = "show"
    search = "search"
    summaries = "summaries"
    delete = "delete"


User = Annotated[str, Option("--user", "-u", metavar="ID", help="Whose session it is.")]


@dataclass(frozen=True, kw_only=True)
class ChatOptions(Stored):
    """Talk with an agent.

    What it says comes as it is made, with the tools it calls. It reads one message a line, from the terminal or from
    standard input; a question of the agent takes the next line as its answer. Ctrl-C cancels the answer that is being
    given, the end of input (Ctrl-D) ends the talk; the exit status is that of the last answer. With --db the session is
    kept, and --session goes on with it.
    """

    target: Annotated[
        str,
        Argument(
            metavar="MODULE:AGENT",
            show_default=False,
            help="Where the agent is: 'package.module:name' or 'file.py:name', the current directory first.",
        ),
    ]
    message: Annotated[
        list[str] | None,
        Option("--message", "-m", metavar="TEXT", help="Say this instead of reading; repeat it to say more."),
    ] = None
    session: Annotated[str | None, Option("--session", "-s", metavar="ID", help="The session; default: a new one.")] = (
        None
    )
    user: User = USER
    app: Annotated[
        str | None, Option("--app", metavar="NAME", help="The app it belongs to; default: the agent's name.")
    ] = None
    agent: Annotated[str | None, Option("--agent", metavar="NAME", help="Talk with this one of its sub-agents.")] = None


@dataclass(frozen=True, kw_only=True)
class SessionsOptions(Stored):
    """List, show, search, delete sessions; their summaries.

    'list' names those of a user, the last changed first. 'show' prints one with its events. 'search' finds events of
    the user's sessions by what was said, best first. 'summaries' prints what stands for the older events of one, up to
    which event, and the last attempts at a summary. 'delete' removes one and the checkpoints of its runs, unless a run
    goes on in it.
    """

    action: Annotated[
        SessionsAction, Argument(metavar="list|show|search|summaries|delete", show_default=False, help="What to do.")
    ]
    session: Annotated[
        str | None,
        Argument(metavar="[SESSION|WORDS]", show_default=False, help="Which one; with 'search' what to look for."),
    ] = None
    app: Annotated[str, Option("--app", metavar="NAME", help="The app they belong to.")]
    user: User = USER
    why: Annotated[
        bool, Option("--why", help="With 'show': below each answer of a model, which events it saw, and why.")
    ] = False
    within: Annotated[str | None, Option("--session", "-s", metavar="ID", help="With 'search': only in this one.")] = (
        None
    )
    limit: Annotated[
        int, Option("--limit", metavar="N", min=1, help="With 'search' and 'summaries': at most so many.")
    ] = 10
