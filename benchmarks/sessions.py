"""Sessions: opening one of 10,000 messages, and searching 1,000 of them."""

import json
import random
import sys
from collections.abc import Iterator

from benchmarks.command import Bench, bench
from benchmarks.figure import Figure
from benchmarks.model_server import PROJECT
from benchmarks.process import run
from panpan.config.locations import Locations
from panpan.session.log.records import record_of
from panpan.session.log.session_log import SessionLog
from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.messages import AssistantMessage, ToolResultMessage, UserMessage

TITLE = "sessions: opening one, searching 1,000"

MESSAGES = 10_000
SESSIONS = 1_000
_TURNS = 20
_VOCABULARY = 20_000
_RARE_EVERY = 50  # sessions that hold the word that is searched


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark."""
    yield from _opening(runs)
    with bench() as place:
        _fill(place)
        first = place.panpan("sessions", "search", "needle").wall_s * 1000
        place.panpan("sessions", "--help")  # the first run compiles
        rare, common = [], []
        for _ in range(runs):
            rare.append(place.panpan("sessions", "search", "needle").wall_s * 1000)
            common.append(place.panpan("sessions", "search", "answer").wall_s * 1000)
    yield Figure(f"search {SESSIONS:,} sessions, the whole command", "ms", rare, at_most=300)
    yield Figure("the same for a word that every message has", "ms", common, at_most=300)
    yield Figure("the first search, which reads them all", "ms", [first], note="once")


def _opening(runs: int) -> Iterator[Figure]:
    """Open sessions in separate processes, whose memory nothing else has used."""
    argv = [sys.executable, "-m", "benchmarks.opened_session"]
    long, twice = (
        [json.loads(run([*argv, str(messages)], env={}, cwd=PROJECT).stdout) for _ in range(runs)]
        for messages in (MESSAGES, 2 * MESSAGES)
    )
    yield Figure(
        f"open {MESSAGES:,} messages, processor time", "ms", [one["opened_s"] * 1000 for one in long], at_most=1000
    )
    memory = Figure("memory for that", "MB", [one["memory_mb"] for one in long], note=f"log {long[0]['log_mb']:.0f} MB")
    yield memory
    growth = [one["memory_mb"] / memory.median for one in twice]
    yield Figure("memory for twice as many", "x", growth, at_most=2.3)


def _fill(place: Bench) -> None:
    """Write sessions of `_TURNS` turns, with a vocabulary as large as in real conversations."""
    folder = Locations.find(place.workspace, {"PANPAN_HOME": str(place.home / ".panpan")}).sessions_folder
    chance = random.Random(1)
    words = [f"word{number}" for number in range(_VOCABULARY)]

    def said(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

    for number in range(SESSIONS):
        log = SessionLog(folder / f"{number:08}.jsonl", session_id=f"{number:08}", cwd=place.workspace)
        for turn in range(_TURNS):
            is_rare = turn == 0 and number % _RARE_EVERY == 0
            log.append(record_of(UserMessage.of(said(30) + " needle" * is_rare)))
            log.append(record_of(AssistantMessage(content=(TextBlock(text=f"answer {said(60)}"),), model="scripted")))
            result = ToolResultBlock(tool_use_id=f"{turn}", content=(TextBlock(text=said(200)),))
            log.append(record_of(ToolResultMessage(result=result)))
        log.close()
