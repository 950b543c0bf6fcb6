"""The command that runs all benchmarks, or those that are named.

python -m benchmarks [--json] [--page] [--runs N] [NAME…]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.table import page_with, show

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"

NAMES = (
    "start_version",
    "first_request",
    "last_reply",
    "rounds",
    "deltas",
    "repl",
    "short_turn",
    "parallel_tools",
    "memory",
    "sessions",
    "search",
    "gate",
    "sandbox",
    "snapshots",
    "many_files",
    "reminders",
    "hooks",
    "skills",
    "mcp",
    "hub",
    "server",
    "subagents",
    "background_tasks",
    "web_fetch",
    "doctor",
    "language_servers",
    "browser",
    "web_page",
    "request_size",
    "local_model",
    "campaign",
    "receipts",
)


def main() -> int:
    """Print the figures; exit 0 even if targets are missed, as some are on a busy machine."""
    options = _options()
    names = options.names or NAMES
    if len(names) > 1:
        return _run_apart(names, options)
    results = {}
    for name in names:
        benchmark = import_module(f"benchmarks.{name}")
        try:
            figures = list(benchmark.measure(options.runs))
        except RuntimeError as error:  # the model cannot be fetched here, say; the others do not depend on it
            print(f"{benchmark.TITLE}\n  not measured: {error}\n", file=sys.stderr, flush=True)
            continue
        results[name] = [figure.as_json() for figure in figures]
        if options.page:
            page = PAGE.read_text(encoding="utf-8")
            PAGE.write_text(page_with(page, show(benchmark.TITLE, figures)), encoding="utf-8")
        if not options.json:
            print(show(benchmark.TITLE, figures), end="\n\n", flush=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 0


def _run_apart(names: Sequence[str], options: argparse.Namespace) -> int:
    """Run each benchmark in a process of its own: the memory of a program counts as that of what it starts."""
    flags = ["--runs", str(options.runs), *(("--page",) if options.page else ())]
    results: dict[str, object] = {}
    for name in names:
        argv = [sys.executable, "-m", "benchmarks", *flags, name]
        if options.json:
            ran = subprocess.run([*argv, "--json"], check=True, stdout=subprocess.PIPE)
            results |= json.loads(ran.stdout)
        else:
            subprocess.run(argv, check=True)
    if options.json:
        print(json.dumps(results, indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure panpan.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(NAMES)}")
    parser.add_argument("--runs", type=int, default=5, help="runs of each measurement (default: 5)")
    parser.add_argument("--json", action="store_true", help="print JSON with every value")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/benchmarks.md, too")
    options = parser.parse_args()
    for name in options.names:
        if name not in NAMES:
            parser.error(f"there is no benchmark {name}; there are {', '.join(NAMES)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
