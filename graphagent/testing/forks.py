"""A process that has imported everything and only forks: processes to kill, for a few milliseconds each.

It has no threads and no open connections, so a fork of it is a clean start (fork(2) copies the calling thread only).
POSIX only. `multiprocessing`'s forkserver is not used: it imports the main module of the caller into every child and
sends arguments by pickle.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import anyio

Job = Mapping[str, Any]
Meet = Callable[[], None]
Worker = Callable[[Job, Meet], Any]
"""Does a job and returns plain data. `meet()` waits until all processes of the batch have called it, or ended."""


class Ended(NamedTuple):
    """How a process ended: `code` 0 with what its worker returned, or minus the number of the signal that killed it."""

    code: int
    result: Any = None


class ForkServer:
    """Runs jobs in processes of their own. `worker` is `module:function`; the module is imported once, in advance.

    A context manager; not for several threads at once. The search path for modules is that of this process.
    """

    def __init__(self, worker: str) -> None:
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "graphagent.testing.forks", worker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )

    def run(self, *jobs: Job) -> list[Ended]:
        """Start a process for each job at once and wait for all. Raises RuntimeError if a worker raises."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(jobs).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the fork server ended with code {self._process.wait()}; its errors are on stderr")
        ended = [Ended(*item) for item in json.loads(line)]
        for job, end in zip(jobs, ended, strict=True):
            if end.code > 0:
                raise RuntimeError(f"a worker failed at {dict(job)!r}:\n{end.result}")
        return ended

    def close(self) -> None:
        """End the server; harmless twice."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class _Rendezvous:
    """Two pipes: children close the first when they are ready, the server closes the second when all are."""

    def __init__(self) -> None:
        self.ready = os.pipe()
        self.go = os.pipe()

    def wait_for_children(self) -> None:
        """Let all children go once each has met or ended."""
        os.close(self.ready[1])
        os.read(self.ready[0], 1)  # nobody writes: this is the end of the pipe
        os.close(self.go[1])
        os.close(self.ready[0])
        os.close(self.go[0])

    def enter(self) -> None:
        """In a child: keep only the ends it uses."""
        os.close(self.ready[0])
        os.close(self.go[1])
        self._waiting = True

    def meet(self) -> None:
        """In a child: wait for the others."""
        self.leave()
        os.read(self.go[0], 1)

    def leave(self) -> None:
        """In a child: don't keep the others waiting."""
        if self._waiting:
            self._waiting = False
            os.close(self.ready[1])


def _child(worker: Worker, job: Job, rendezvous: _Rendezvous, out: int) -> None:
    code, result = 1, None
    try:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the server's own stdout is for its replies
        rendezvous.enter()
        try:
            result, code = worker(job, rendezvous.meet), 0
        except BaseException:
            result = traceback.format_exc()
        rendezvous.leave()
        with os.fdopen(out, "wb") as pipe:
            pipe.write(json.dumps(result).encode())
    finally:
        os._exit(code)


def _run(worker: Worker, jobs: list[Job]) -> list[tuple[int, Any]]:
    rendezvous = _Rendezvous()
    children: list[tuple[int, int]] = []
    for job in jobs:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(worker, job, rendezvous, write)
        os.close(write)
        children.append((pid, read))
    rendezvous.wait_for_children()
    ended = []
    for pid, read in children:
        with os.fdopen(read, "rb") as pipe:
            text = pipe.read()
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        ended.append((code, json.loads(text) if text else None))
    return ended


def main(target: str) -> None:
    """Serve batches of jobs, a line of JSON each, until stdin ends."""
    module, _, name = target.partition(":")
    worker: Worker = getattr(importlib.import_module(module), name)
    anyio.run(anyio.sleep, 0)  # loads the event loop's backend
    gc.collect()
    gc.freeze()  # collections in a child would copy the pages of everything that was imported
    for line in sys.stdin.buffer:
        ended = _run(worker, json.loads(line))
        sys.stdout.write(json.dumps(ended) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
