"""What is shown: results on standard output as text or JSON, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from pydantic_core import to_jsonable_python

LONGEST = 200
"""Characters of a value that text output shows; JSON output shows all."""


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command says what it has to say. `stream` is the standard output of the process."""

    as_json: bool
    stream: TextIO

    def show(self, document: Any, text: str) -> None:
        """The result of the command: the document with `--json`, else the text."""
        print(
            json.dumps(jsonable(document), indent=2, ensure_ascii=False) if self.as_json else text,
            file=self.stream,
            flush=True,
        )

    def line(self, document: Any, text: str) -> None:
        """One item of a stream: a line of JSON with `--json`, else of text."""
        print(compact(document) if self.as_json else text, file=self.stream, flush=True)

    def note(self, text: str) -> None:
        """Something a person should know beside the result."""
        print(text, file=sys.stderr, flush=True)

    def failure(self, error: Exception) -> None:
        """The message of an error, with the hints that were added to it."""
        hints = list(getattr(error, "__notes__", ()))
        self.note("\n".join([f"graphagent: {error}", *hints]))
        if self.as_json:
            self.show({"error": {"type": type(error).__name__, "message": str(error), "hints": hints}}, "")


def jsonable(value: Any) -> Any:
    """A value as JSON data: models as objects, bytes as base64, NaN and infinities as text, secrets hidden."""
    return to_jsonable_python(value, fallback=str, bytes_mode="base64", inf_nan_mode="strings")


def compact(value: Any) -> str:
    """A value as one line of JSON."""
    return json.dumps(jsonable(value), ensure_ascii=False)


def short(value: Any) -> str:
    """A value as one line of JSON, cut if it is long."""
    text = compact(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters; --json shows all)"


def fields(values: Mapping[str, Any]) -> str:
    """Fields as text, one a line."""
    width = max(map(len, values), default=0)
    return "\n".join(f"  {name:{width}}  {short(value)}" for name, value in values.items())


def declared(names: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a state in the order in which its fields are declared; unset ones are left out."""
    return {name: values[name] for name in names if name in values}


def columns(heading: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as aligned text, whatever the width of the terminal."""
    table = [list(heading), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(heading))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table)
