"""The REPL on a terminal: the cost of streaming, the output of a flood, and the time until it takes keys.

The terminal is a pseudo-terminal that answers as real ones do and is emptied at once; what it costs itself is not
counted.
"""

import resource
import time
from collections.abc import Callable, Iterator, Sequence

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure, ratio
from benchmarks.model_server import ModelServer, serving
from tests.terminal_emulator import Terminal
from tests.terminal_emulator.keys import ctrl

TITLE = "the REPL on a terminal"

_CHARS = 5
_PARAGRAPH = 60
_END = "Wholly done."
_TIMEOUT_S = 120.0
_TYPED = "¤"
"""Character that nothing else on the screen has."""
_FLOOD_S = 3
_PACES = {"as fast as it comes": (20_000, 0.0), "500 a second": (2_000, 0.002)}
"""Number of deltas, and the pause before each, by the name of the pace."""


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    for name, (deltas, pause_s) in _PACES.items():
        yield from _streaming(name, deltas, pause_s, runs)
    yield from _flood(runs)
    yield from _start(runs)


def _streaming(name: str, deltas: int, pause_s: float, runs: int) -> Iterator[Figure]:
    short = {"text": _END, "chunk_chars": _CHARS}
    long = {"text": f"{_answer(deltas)}\n\n{_END}", "chunk_chars": _CHARS, "delta_delay_s": pause_s}
    on_screen, headless = [], []
    with bench() as place, serving({"repeat": True, "replies": [short, long]}) as server:
        for _ in range(runs):
            on_screen.append(_cost_ms(lambda: _repl_cpu_s(place, server), deltas))
            headless.append(_cost_ms(lambda: place.ask(server.url).cpu_s, deltas))
    ours = Figure(f"1,000 deltas on the screen, {name}", "ms", on_screen)
    beside = Figure("the same, headless", "ms", headless)
    yield from (ours, beside, ratio("the one as a multiple of the other", ours, beside))


def _answer(deltas: int) -> str:
    """Return words of `_CHARS` characters, one for each delta, in paragraphs."""
    words = ["word " if number % _PARAGRAPH else "\n\nwor" for number in range(1, deltas)]
    return "".join(words).strip()


def _cost_ms(run: Callable[[], float], deltas: int) -> float:
    """Return milliseconds for 1,000 deltas: one run gets the short reply, the next the long one."""
    short_s, long_s = run(), run()
    return (long_s - short_s) / deltas * 1e6


def _repl_cpu_s(place: Bench, server: ModelServer) -> float:
    """Return the processor time of a REPL that shows one answer and then ends."""
    before = _children_cpu_s()
    with place.on_terminal(server.url, "say hello") as terminal:
        _wait_for_bytes(terminal, _END)
        terminal.send(ctrl("d"))
        terminal.wait(timeout_s=_TIMEOUT_S)
    return _children_cpu_s() - before


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _flood(runs: int) -> Iterator[Figure]:
    flood = {
        "type": "tool_use",
        "name": "Bash",
        "input": {"command": f"timeout {_FLOOD_S} seq -f 'line %.0f of the flood' 1e12"},
    }
    most = []
    with bench() as place, serving({"repeat": True, "replies": [{"blocks": [flood]}, {"text": _END}]}) as server:
        for _ in range(runs):
            with place.on_terminal(server.url, "say hello", "--permission-mode", "bypassPermissions") as terminal:
                _wait_for_bytes(terminal, _END)
                most.append(_most_in_a_second(terminal.arrivals) / 1000)
    name = f"written in the busiest second while a command floods for {_FLOOD_S} s"
    yield Figure(name, "KB", most, at_most=50, note="ten frames of what is live")


def _most_in_a_second(arrivals: Sequence[tuple[float, int]]) -> int:
    """Return the largest number of bytes within a second."""
    most, total, first = 0, 0, 0
    for at_s, size in arrivals:
        total += size
        while arrivals[first][0] < at_s - 1:
            total -= arrivals[first][1]
            first += 1
        most = max(most, total)
    return most


def _start(runs: int) -> Iterator[Figure]:
    firsts, bare, ours, beside = [], [], [], []
    with bench() as place, serving({"replies": []}) as server:
        _start_ms(place, server.url)  # the first run compiles
        for _ in range(runs):
            bare.append(place.python("import click").wall_s * 1000)
            beside.append(place.python("import prompt_toolkit").wall_s * 1000)
            first_ms, prompt_ms = _start_ms(place, server.url)
            firsts.append(first_ms)
            ours.append(prompt_ms)
    first = Figure("start to the first sign on the screen", "ms", firsts, at_most=150)
    click = Figure('python -c "import click"', "ms", bare)
    yield from (first, click, ratio("the one as a multiple of the other", first, click, at_most=3))
    prompt = Figure("start to a prompt that shows what is typed", "ms", ours, at_most=400)
    toolkit = Figure('python -c "import prompt_toolkit"', "ms", beside)
    yield from (prompt, toolkit, ratio("the one as a multiple of the other", prompt, toolkit))


def _start_ms(place: Bench, url: str) -> tuple[float, float]:
    """Return milliseconds from the start to the first output, and to an input that shows typed text."""
    started_at = time.monotonic()
    with place.on_terminal(url) as terminal:
        # if it was typed before the input is drawn, after the first output, the terminal itself would show it
        terminal.wait_for(lambda _: terminal.raw.count("❯".encode()) > 1, timeout_s=_TIMEOUT_S)
        terminal.send(_TYPED)
        _wait_for_bytes(terminal, _TYPED)
        return (terminal.arrivals[0][0] - started_at) * 1000, (time.monotonic() - started_at) * 1000


def _wait_for_bytes(terminal: Terminal, text: str) -> None:
    terminal.wait_for(lambda _: text.encode() in terminal.raw, timeout_s=_TIMEOUT_S)
