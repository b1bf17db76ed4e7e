"""Writes a diagnosis in Markdown from the facts on standard input."""

import json
import os
import sys
from pathlib import Path


def lines(facts):
    yield f"# {facts['target']}: {facts['verdict']}"
    yield ""
    yield f"Judged at {facts['judged_at']} for {facts['host'] or 'no host'}."
    for finding in facts["findings"]:
        yield ""
        yield f"## {finding['title']}"
        yield ""
        yield f"{finding['severity']}, `{finding['code']}`"
        for name in ("evidence", "mend"):
            if finding.get(name):
                yield f"- {name}: {finding[name]}"
    if facts.get("script"):
        yield ""
        yield f"A script that mends it: {facts['script']}"


def main():
    facts = json.load(sys.stdin)
    Path(os.environ["OUTPUT_DIR"], "diagnosis.md").write_text("\n".join(lines(facts)) + "\n", encoding="utf-8")
    print(f"{len(facts['findings'])} findings")


if __name__ == "__main__":
    main()
