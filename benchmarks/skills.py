"""Two thousand skills of the user: what they cost before the first request, before the REPL takes words, and in it."""

from collections.abc import Iterator
from statistics import median
from time import perf_counter

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import ModelServer, serving

TITLE = "skills"

MANY = 2_000
_SCRIPT = {"repeat": True, "replies": [{"text": "Hello.", "writes": "bulk"}]}


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark; runs with and without skills alternate."""
    with bench() as few, bench() as many, serving(_SCRIPT) as server:
        _write_skills(many)
        for place in (few, many):
            _first_request(place, server)  # it compiles
        pairs = [(_first_request(few, server), _first_request(many, server)) for _ in range(runs)]
        starts = [(_until_prompt_ms(few, server), _until_prompt_ms(many, server)) for _ in range(runs)]
    yield Figure(f"prompt of the REPL, {MANY:,} skills, beyond that without", "ms", _beyond(starts), at_most=10)
    yield Figure(
        f"first request, {MANY:,} skills, beyond that without", "ms", _beyond([(a[0], b[0]) for a, b in pairs])
    )
    yield Figure("size of the first request, beyond that without", "KB", _beyond([(a[1], b[1]) for a, b in pairs]), 20)


def _beyond(pairs: list[tuple[float, float]]) -> list[float]:
    return [with_skills - without for without, with_skills in pairs]


def _write_skills(place: Bench) -> None:
    for number in range(MANY):
        folder = place.home / ".claude" / "skills" / f"skill-{number:04}"
        folder.mkdir(parents=True)
        head = f"name: skill-{number:04}\ndescription: Does task {number}. Use it when the user speaks of such a task."
        (folder / "SKILL.md").write_text(f"---\n{head}\n---\n" + "Do this, and then that.\n" * 200)


def _first_request(place: Bench, server: ModelServer) -> tuple[float, float]:
    """Return the milliseconds from the start to the first request, and its kilobytes."""
    run = place.ask(server.url)
    request = server.requests(1)[0]
    return (request["began_at"] - run.started_at) * 1000, request["bytes"] / 1000


def _until_prompt_ms(place: Bench, server: ModelServer) -> float:
    """Return the milliseconds until a word that is typed at once is on the screen."""
    times = []
    for _ in range(3):
        started_at = perf_counter()
        with place.on_terminal(server.url) as terminal:
            terminal.send("word")
            terminal.wait_for("❯ word")
            times.append((perf_counter() - started_at) * 1000)
    return median(times)
