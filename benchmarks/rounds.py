"""Client time for a round: from the end of one reply to the next request, while the history grows.

A round reads a file: of 4 KB in the short sessions, of 200 bytes in the long ones, since the model server, which keeps
and checks every request whole, would otherwise take most of the time. Turning the history into bytes is in the time
from reply to request; it is measured once more by itself, in this process, on a history of the same length.

A place such as round 60 is the median of the 20 rounds around it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import serving
from panpan.models.providers import anthropic_request as wire
from panpan.models.wire import Prefix, WireHistory
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

TITLE = "client time for a round"

SHORT, LONG = 60, 1_000
_FILES = 50
_SHORT_BYTES, _LONG_BYTES = 4_000, 200
_LONG_RUNS = 3  # at most; the server needs half a minute for each
_WINDOW = 20  # rounds around a place, of which the median is taken


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    long_runs = min(runs, _LONG_RUNS)
    serialising = [_serialising_ms(LONG, _LONG_BYTES) for _ in range(long_runs)]
    short = [_client_ms(SHORT, _SHORT_BYTES) for _ in range(runs)]
    long = [_client_ms(LONG, _LONG_BYTES) for _ in range(long_runs)]
    yield Figure(f"median of {SHORT} rounds", "ms", [median(times) for times in short], at_most=8)
    for name, pick in (("round 1", _first), (f"round {SHORT}", _at_60), (f"round {LONG:,}", _last)):
        yield Figure(f"{name}, of {LONG:,}", "ms", [pick(times) for times in long])
        yield Figure(f"{name}, serialising", "ms", [pick(times) for times in serialising])
    ratios = [
        (_last(times) - _last(apart)) / (_first(times) - _first(apart))
        for times, apart in zip(long, serialising, strict=True)
    ]
    yield Figure(f"round {LONG:,} / round 1, without serialising", "x", ratios, at_most=3)


def _first(times: Sequence[float]) -> float:
    return median(times[:_WINDOW])


def _at_60(times: Sequence[float]) -> float:
    return median(times[SHORT - _WINDOW // 2 : SHORT + _WINDOW // 2])


def _last(times: Sequence[float]) -> float:
    return median(times[-_WINDOW:])


def _fill(place: Bench, size: int) -> None:
    for number in range(_FILES):
        (place.workspace / f"file_{number}.txt").write_text(("a line of a file that is read\n" * 200)[:size])


def _client_ms(rounds: int, size: int) -> list[float]:
    """Return the milliseconds between each reply and the next request, in one session of the real command."""
    reads = [
        {"blocks": [{"type": "tool_use", "name": "Read", "input": {"file_path": f"file_{number % _FILES}.txt"}}]}
        for number in range(rounds)
    ]
    script = {"replies": [{**reply, "writes": "bulk"} for reply in reads] + [{"text": "Done."}]}
    with bench() as place, serving(script) as server:
        _fill(place, size)
        place.ask(server.url, "--max-turns", str(rounds + 1))
        requests = server.requests(rounds + 1)
    return [(after["began_at"] - before["finished_at"]) * 1000 for before, after in pairwise(requests)]


def _serialising_ms(rounds: int, size: int) -> list[float]:
    """Return the milliseconds that it takes to encode the history as a request's body, for each round."""
    prefix = Prefix(
        encode_head=wire.encode_head,
        new_history=lambda model: WireHistory(partial(wire.encode_reply, model=model), wire.encode_user_side),
    )
    options = ModelOptions("scripted-model", 1000)
    messages: list[Message] = [UserMessage(content=(TextBlock(text="hello"),))]
    times = []
    for number in range(rounds):
        messages += _round(number, size)
        started_at = perf_counter()
        head, groups = prefix.of(ModelRequest("", (), messages), options, is_stream=True)
        wire.join_body(head, groups)
        times.append((perf_counter() - started_at) * 1000)
    return times


def _round(number: int, size: int) -> tuple[Any, ...]:
    use = ToolUseBlock(id=f"toolu_{number}", name="Read", input={"file_path": "file.txt"})
    result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text="x" * size),))
    reply = AssistantMessage(content=(use,), model="scripted-model", stop_reason="tool_use")
    return reply, ToolResultMessage(result=result)
