"""Where the time of one case goes: ``python -m benchmarks.hotspots PEER WORKLOAD SIZE`` (in the peer's venv).

cProfile charges about a microsecond to each call, so the shares of small functions look larger than they are.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from benchmarks.contract import Bench
from benchmarks.measure import base_folder, load_case, parse, profiled

TOP = 15


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory(dir=base_folder(options.disk)) as folder:
        case = load_case(options.peer, options.workload, options.size, Bench(Path(folder), options.variant))
        stats = asyncio.run(profiled(case, builtins=True))
    for order in ("cumulative", "tottime"):
        stats.strip_dirs().sort_stats(order).print_stats(TOP)


if __name__ == "__main__":
    main()
