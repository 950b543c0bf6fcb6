"""Eight calls in one message of the installed program: shell commands in the box, and searches.

The time is that from the end of the reply with the calls to the next request, so it includes all that panpan does for
them: parsing, permissions, the box, the log, and loading what the first such call needs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving

TITLE = "eight calls in one message"

CALLS = 8
SLEEP_S = 0.5
FILES = 2_000
_LINE = "def function(argument):\n    return argument + 1\n"


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    sleeps = [("Bash", {"command": f"sleep {SLEEP_S}"})] * CALLS
    yield Figure(f"`sleep {SLEEP_S}` in the box", "s", [_run(sleeps) for _ in range(runs)], at_most=0.55)
    writes = [("Bash", {"command": f"sleep {SLEEP_S}; echo {n} > out{n}.txt"}) for n in range(4)]
    note = "what a command writes is not known, so they take turns"
    yield Figure("four commands that write", "s", [_run(writes) for _ in range(runs)], note=note)
    searches = [("Grep", {"pattern": f"needle_{n}"}) for n in range(CALLS)]
    yield Figure(f"searches of {FILES:,} files", "s", [_run(searches, _fill) for _ in range(runs)], at_most=0.13)


def _run(calls: Sequence[tuple[str, Mapping[str, Any]]], fill: Callable[[Bench], None] = lambda _: None) -> float:
    """Return the seconds that the calls of one message take together."""
    blocks = [
        {"type": "tool_use", "name": name, "input": {**arguments, **_told_apart(name, number)}}
        for number, (name, arguments) in enumerate(calls)
    ]
    script = {"replies": [{"blocks": blocks, "writes": "bulk"}, {"text": "Done."}]}
    with bench() as place, serving(script) as server:
        fill(place)
        place.ask(server.url, "--permission-mode", "auto", "--allowedTools", "Bash(*)")
        asked, answered = server.requests(2)
    return float(answered["began_at"] - asked["finished_at"])


def _told_apart(name: str, number: int) -> Mapping[str, Any]:
    """Return an argument that makes equal calls different, since equal ones run once."""
    return {"description": f"wait {number}"} if name == "Bash" else {}


def _fill(place: Bench) -> None:
    for number in range(FILES):
        path = place.workspace / f"package_{number // 100:02}" / f"module_{number:04}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(_LINE * 20 + f"# needle_{number % 200}\n")
