"""Which commands a policy lets pass, and that what passes runs nothing else."""

from __future__ import annotations

import json
import shlex
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest

from graphagent.errors import ExecutorUnavailable, ToolError, UsageError
from graphagent.execution import ExecutionLimits, Program
from runner.execution import CommandPolicy, SandboxExecutor
from runner.execution.policy import BUILT_IN_DENY, scrubbed, segments_of


def refused(policy: CommandPolicy, command: str) -> str:
    """What is said of a command that is refused."""
    with pytest.raises(ToolError) as caught:
        policy.checked(command)
    return str(caught.value)


def test_case_32_a_list_of_programs_names_programs_exactly() -> None:
    """With git allowed: neither another path to one, nor a shell behind a pipe, nor another case of letters."""
    policy = CommandPolicy(allow=("git",))
    assert "not allowed; did you mean 'git'?" in refused(policy, "./git status")
    assert "'sh' is denied" in refused(policy, "git status | sh")
    assert "not allowed" in refused(policy, "GIT status")
    assert "not allowed" in refused(policy, "/usr/bin/git status")
    assert policy.checked("git status") == "env -- git status"
    assert CommandPolicy(allow=("/usr/bin/git",)).checked("/usr/bin/git log")


@pytest.mark.parametrize("command", ["git log $(x)", "git log > f", "git `x`", "git <(x)", "git << E", "git log 2>&1"])
def test_case_33_substitutions_and_redirections(command: str) -> None:
    """A policy refuses what would run something that it doesn't see, or write a file."""
    assert "in it" in refused(CommandPolicy(allow=("git",)), command)


SHELL_ONLY = [
    "", " ", "git &", "git & git", "git |& git", "git ;; git", "git; ", "; git", "git && ", "git |", "git || || git",
    "git\ngit", "git\rgit", "git\x00", "git\tlog", "(git)", "{ git; }", "git() { git; }", "if git; then git; fi",
    "! git", "X=1 git", "X+=1", "git $HOME", 'git "$HOME"', 'git "`x`"', "git *", "git [a]", "git a?", "git {a,b}",
    "git # x", "git 'a", 'git "a', "git \\", "~/git", "git ~/x", "'if' git", "'' git", "git $'a'", "-i git",
    "git\ud800",
]  # fmt: skip


@pytest.mark.parametrize("command", SHELL_ONLY, ids=repr)
def test_what_only_a_shell_understands_is_refused(command: str) -> None:
    """Lists, blocks, variables, globs, assignments, comments, control characters, quotes without an end."""
    refused(CommandPolicy(allow=("git", "if", "~/git", "X=1", "-i")), command)


@pytest.mark.parametrize("name", sorted(BUILT_IN_DENY - {"."}))
def test_what_starts_other_programs_is_never_allowed(name: str) -> None:
    """Nor when it is in the list itself, by its path, or in capitals."""
    for written in (name, f"/bin/{name}", name.upper(), f"'{name}'", f"{name[0]}\\{name[1:]}"):
        assert "is denied" in refused(CommandPolicy(allow=(name, written, f"/bin/{name}")), f"{written} x")


def test_what_is_denied_goes_before_what_is_allowed() -> None:
    """By name, by the end of a path, whatever the case; without a list of what is allowed all else may run."""
    policy = CommandPolicy(deny=("curl",))
    for command in ("curl x", "/usr/bin/curl x", "CURL x", "git log && curl x", 'c"ur"l x'):
        assert "'" in refused(policy, command)
    assert policy.checked("git log | head") == "env -- git log | env -- head"
    assert "denied" in refused(CommandPolicy(("curl",), ("curl",)), "curl x")
    assert not CommandPolicy().active
    with pytest.raises(UsageError, match="has no name"):
        CommandPolicy(allow=(" ",))


def test_words_are_read_as_a_shell_reads_them() -> None:
    """Quotes, backslashes and operators without spaces."""
    found = segments_of('git \'a b\'"c\\"d"\\ e "x\\y"&&head -1;tail||wc|cat HEAD~1 \'*\'')
    assert [one.before for one in found] == ["", "&&", ";", "||", "|"]
    assert found[0].argv == ("git", 'a bc"d e', "x\\y")
    assert found[4].argv == ("cat", "HEAD~1", "*")


def test_an_environment_that_steers_programs_is_dropped() -> None:
    """What decides which programs are found, what they load and start; what is no name; the rest stays."""
    env = {
        "PATH": "/x",
        "LD_PRELOAD": "x",
        "DYLD_X": "x",
        "BASH_FUNC_a%%": "x",
        "a b": "",
        "GIT_PAGER": "x",
        "OWN": "1",
    }
    assert scrubbed({**env, "OWN": "1", "IFS": "/", "Home": "/", "_own2": "2"}) == {"OWN": "1", "_own2": "2"}


@pytest.fixture
async def room(anyio_backend: str) -> AsyncIterator[Any]:
    """A workspace of a sandbox, with programs that only write down what they were called with."""
    executor = SandboxExecutor()
    try:
        made = await executor.open("policy")
    except ExecutorUnavailable as error:
        pytest.skip(f"the sandbox can't be had here: {error}")
    stub = b'#!/usr/bin/bash\nprintf "%s\\0" "${0##*/}" "$@" END >> /tmp/log\n'
    for name in (*PROGRAMS, *TRIPWIRES):
        await made.put(f"work/bin/{name}", stub, executable=True)
    await made.put("work/bin/env", b'#!/usr/bin/bash\nshift\nexec "$@"\n', executable=True)
    await made.put("work/all.py", ALL.encode())
    yield made
    await executor.aclose()


PROGRAMS = ("git", "head")
TRIPWIRES = ("trip", "HOME", "log", "x")
ALL = """
import json, os, subprocess, sys
found = []
for shell, command in json.load(sys.stdin):
    open("/tmp/log", "w").close()
    subprocess.run(["/usr/bin/" + shell, "-c", command], env={"PATH": "/workspace/work/bin"}, cwd="/workspace/out",
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20)
    said = open("/tmp/log").read().split("END\\0")[:-1]
    found.append([one.split("\\0")[:-1] for one in said])
json.dump([found, os.listdir("/workspace/out")], sys.stdout)
"""
NOISE = ["`trip`", "$(trip)", "& trip", "> trip", "#", "(trip)", "|& trip", "<(trip)", "{trip,x}", "$x", "*", ";", "~"]
ODD = [*NOISE, "'", '"', "\\", "`", "$", "&", ">", "|", " trip ", "$'\\'' trip '"]
PLAIN = ["a", "-1", "x=y", "~", "HEAD~1", "%s", "^", "-", "é", "=", "trip", "@", ",", ":", " "]
NAMES = [*PROGRAMS, *PROGRAMS, "g'i't", '"git"', "\\git", "trip"]


def random_line(random: Random) -> str:
    """A command line: programs, quoted and plain words, and things that only a shell understands among them."""
    text = random.choice(NAMES)
    for _ in range(random.randrange(4)):
        inside = "".join(random.choice(PLAIN + ODD) for _ in range(random.randrange(4)))
        plain = "".join(random.choice(PLAIN) for _ in range(2))
        letter = random.choice("`$&>|;'\" *\\")
        kept = inside.replace("'", "")
        word = random.choice([f"'{kept}'", f'"{inside}"', plain, f"\\{letter}", plain])
        text += random.choice([" ", " ", ""]) + word + random.choice(ODD if random.random() < 0.15 else [""])
        if random.random() < 0.3:
            text += random.choice(["|", "&&", " || ", ";"]) + random.choice(NAMES)
    return text


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(2))
async def test_what_is_allowed_runs_nothing_else(room: Any, seed: int) -> None:
    """Random command lines that pass, given to two real shells as they were written and as the policy hands them on:
    only programs that were checked are started, with the words that were read, and no file is written."""
    random = Random(seed)
    texts = [random_line(random) for _ in range(400)]
    policy = CommandPolicy(allow=PROGRAMS)
    passed = {}
    for text in texts:
        try:
            passed[text] = policy.checked(text)
        except ToolError:
            continue
    assert len(passed) > 50
    given_ = [(shell, text) for pair in passed.items() for text in pair for shell in ("bash", "dash")]
    ran = await room.run(Program(("python3", "work/all.py"), stdin=json.dumps(given_).encode(), limits=LIMITS))
    assert ran.exit_code == 0, ran
    found, written = json.loads(ran.stdout)
    assert written == []
    for (_, text), started in zip(given_, found, strict=True):
        source = next(key for key, value in passed.items() if text in (key, value))
        expected = [list(one.argv) for one in segments_of(source)]
        assert all(one in expected for one in started), (text, started)


LIMITS = ExecutionLimits(seconds=120, output_bytes=16_000_000)


def test_the_handed_on_text_reads_as_it_was_read() -> None:
    """Each word is quoted: reading the text again gives the same words."""
    policy = CommandPolicy(allow=("a b", "c"))
    again = shlex.split(policy.checked("'a b' \"x'y\" | c \\$z"))
    assert again == ["env", "--", "a b", "x'y", "|", "env", "--", "c", "$z"]
