"""The page in the browser after 10,000 events, live and loaded again: its memory, and its work for a frame.

The memory is that of the tab's process which nothing else shares, after a collection of garbage. The work is that of
the processor.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.figure import Figure
from tests.faces.server.served_page import chromium, served_page
from tests.model_server import Reply, Text, Thinking, ToolCall, say

TITLE = "the page in the browser"

EVENTS = 10_000
_ROUNDS = 40
_WORDS = (
    "Each round says `something`, with **emphasis** and a list:\n\n- one\n- two\n\nThen it reads a file again.\n\n" * 4
)
_PROMPT = "go"


def measure(runs: int) -> Iterator[Figure]:
    """Yield the figures of this benchmark.

    Raises:
        RuntimeError: There is no browser here.
    """
    live, work, again, drawn = zip(*(_measured() for _ in range(runs)), strict=True)
    yield Figure(f"memory of the tab after {EVENTS:,} events", "MB", live, at_most=150)
    yield Figure("the same after a reload", "MB", again, at_most=150)
    yield Figure("work for a frame while it streams, drawing included", "ms", work, at_most=8)
    yield Figure("reload to the conversation on the screen", "ms", drawn, at_most=1_500)


def _measured() -> tuple[float, float, float, float]:
    """Return memory, work for a frame, and after a reload memory and the time to draw."""
    rounds = [
        Reply(
            (Thinking(_WORDS[:200]), Text(_WORDS), ToolCall("Read", {"file_path": "a.py", "offset": line})),
            chunk_chars=4,
        )
        for line in range(1, _ROUNDS + 1)
    ]
    with TemporaryDirectory() as folder, chromium() as browser:
        project = Path(folder, "project")
        project.mkdir()
        (project / "a.py").write_text("print('a line')\n" * 200)
        with served_page(Path(folder), {_PROMPT: [*rounds, say("All is done.")]}) as address:
            page = browser.new_page()
            page.set_default_timeout(120_000)
            devtools = page.context.new_cdp_session(page)
            devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(address)
            begin, count = _metrics(devtools), 0
            while count < EVENTS:
                page.locator("#prompt").fill(_PROMPT)
                page.keyboard.press("Enter")
                page.locator(".state.busy").wait_for()
                page.locator(".state.idle").wait_for(state="attached")
                count = _last_event(address, page.url)
            end = _metrics(devtools)
            work = (end["TaskDuration"] - begin["TaskDuration"]) / (end["LayoutCount"] - begin["LayoutCount"]) * 1000
            live = _own_mb(browser, devtools)
            started_at = perf_counter()
            page.reload()
            page.locator(".reply").filter(has_text="All is done.").last.wait_for()
            drawn = (perf_counter() - started_at) * 1000
            return live, work, _own_mb(browser, devtools), drawn


def _last_event(address: str, url: str) -> int:
    origin, _, token = address.partition("/#")
    session = url.partition("session=")[2]
    request = Request(f"{origin}/v1/sessions/{session}", headers={"Authorization": f"Bearer {token}"})
    with urlopen(request, timeout=30) as response:
        last: int = json.load(response)["last"]
        return last


def _metrics(devtools: Any) -> Mapping[str, float]:
    return {one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]}


def _own_mb(browser: Any, devtools: Any) -> float:
    """Return the memory of the largest tab that it shares with no other process."""
    devtools.send("HeapProfiler.collectGarbage")
    processes = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(_private_mb(one["id"]) for one in processes if one["type"] == "renderer")


def _private_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024
