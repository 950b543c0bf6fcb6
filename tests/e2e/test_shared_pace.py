"""Processes that share the pace of their requests through a folder: the pause of one holds back the other."""

import json
import subprocess
from pathlib import Path
from threading import Event

from tests.e2e.conftest import Panpan, finished, wait_until
from tests.model_server import HttpError, RecordedRequest, call, say, serving
from tests.model_server.script import Step

PAUSE_S = 2.0


def test_pause_of_one_process_holds_back_the_others(panpan: Panpan, tmp_path: Path) -> None:
    folder, refused = tmp_path / "pace", Event()

    def answer(request: RecordedRequest) -> Step:
        if len(server.requests) == 1:
            return HttpError(429, headers={"retry-after": f"{PAUSE_S:.0f}"})
        return say("done")

    with serving(answer, finished=lambda _: refused.set()) as server:
        panpan.use(server)
        flags = ("-p", "go", "-f", "stream-json", "--set", f"retry.shared_folder={folder}")
        first = panpan.start(*flags, is_installed=False, stdin=subprocess.DEVNULL)
        assert refused.wait(60)
        wait_until((folder / "anthropic.pause.json").exists)
        others = [panpan.start(*flags, is_installed=False, stdin=subprocess.DEVNULL) for _ in range(2)]
        runs = [finished(process) for process in (first, *others)]

    assert [run.result["result"] for run in runs] == ["done"] * 3
    assert len(server.requests) == 4
    refused_request, *later = server.requests
    assert min(request.arrived_at for request in later) >= refused_request.arrived_at + PAUSE_S


def test_subagent_shares_the_pace_of_its_process(panpan: Panpan, tmp_path: Path) -> None:
    folder = tmp_path / "pace"
    folder.mkdir()
    (folder / "anthropic.rate.json").write_text(json.dumps({"interval_s": 0.5}))
    task = {"description": "look", "prompt": "look", "subagent_type": "explore"}
    with serving([call("Task", task), say("looked"), say("done")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go", "--yes", "--set", f"retry.shared_folder={folder}")

    assert (done.code, done.stdout) == (0, "done\n"), done.stderr
    times = [request.began_at for request in server.requests]
    assert times[1] - times[0] >= 0.45
    assert times[2] - times[1] >= 0.45
