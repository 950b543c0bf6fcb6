"""A campaign whose processes are killed with -9 at random: each task ends once, with one effect, within the budget.

`PANPAN_SOAK` makes it 200 tasks, with panpan started as users start it.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import holder_of
from panpan.batch.store.records import Result
from panpan.system.processes.process_table import RunningProcess, running_processes, still_running
from tests.fakes.campaign import frozen_of, make_campaign, task_of
from tests.model_server import RecordedRequest, Reply, Tokens, ToolCall, say, serving
from tests.prepared_command import PREPARED

IS_SOAK = "PANPAN_SOAK" in os.environ
pytestmark = pytest.mark.timeout(7200 if IS_SOAK else 300)

TASKS = 200 if IS_SOAK else 12
KILLED_RUNS = 20 if IS_SOAK else 3
"""Runs of the campaign that are killed, before one may end."""
RUN_S = (4.0, 20.0) if IS_SOAK else (0.8, 2.0)
"""Least and most seconds until a run of the campaign is killed."""
SUSPENDED_EACH = 5
PAUSE_S = (0.1, 1.5)
"""Least and most seconds between kills of the panpan of attempts."""
LIMIT_USD = 0.6
BUDGET_USD = 4 * LIMIT_USD + 0.05 * TASKS
TOKENS = Tokens(input=2_000, output=100)
CAMPAIGN = f"""
[attempt]
flags = ["--yes", "--sandbox", "off"]
max_usd = {LIMIT_USD}
retries = 90
[budget]
usd = {BUDGET_USD}
[where]
at_once = 4
[workspace]
source = "../project"
[[task]]
id = "first"
prompt = "p"
"""


class Model:
    """The model: it does the effect of its task, and looks what became of it where that is unclear.

    Args:
        effects: The file of effects, outside all workspaces.
    """

    def __init__(self, effects: Path) -> None:
        self._effects = effects
        self._rng = random.Random(7)
        self.looks = 0
        """Replies that look what became of a command which a kill cut off."""

    def __call__(self, request: RecordedRequest) -> Reply:
        # a name stands in the prompt, and in nothing else that is about an effect
        (name,) = set(re.findall(r"effect of (task-\d+)", json.dumps(request.messages)))
        is_done: bool | None = False
        for command, text in _calls(request.messages):
            if command.startswith("grep"):
                count = re.search(r"found (\d+)", text)  # none if the look itself was cut off
                is_done = None if count is None else count[1] != "0"
            else:
                is_done = True if "effect-done" in text else None
        delay = {"tokens": TOKENS, "first_delay_s": self._rng.uniform(0, 0.1)}
        if is_done:
            return say(f"The effect of {name} is there.", **delay)
        self.looks += is_done is None
        look = f"grep -cx {name} {self._effects} | sed 's/^/found /'"
        do = f"sleep 0.2 && echo {name} >>{self._effects} && sleep 0.2 && echo effect-done"
        command = look if is_done is None else do
        return Reply((ToolCall("Bash", {"command": command}),), **delay)


def _calls(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the command of each call, and the text of its result."""
    commands: dict[str, str] = {}
    for message in messages:
        for block in message["content"]:
            if isinstance(block, dict) and block["type"] == "tool_use":
                commands[block["id"]] = block["input"]["command"]
            elif isinstance(block, dict) and block["type"] == "tool_result":
                yield commands[block["tool_use_id"]], json.dumps(block["content"])


class Soak:
    """Runs of one campaign, and who kills them.

    Args:
        root: An empty folder.
        url: Address of the model.
    """

    def __init__(self, root: Path, url: str, effects: Path) -> None:
        self.folder = make_campaign(root, CAMPAIGN)
        self.effects = effects
        tasks = [
            task_of(
                f"task-{number:03}",
                f"Do the effect of task-{number:03}.",
                verify={"command": f"grep -qx task-{number:03} {effects}"},
            )
            for number in range(TASKS)
        ]
        self.tasks = {task.id: task.name for task in tasks}
        frozen_of(self.folder, tasks)
        self.environ = {
            **{name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TMPDIR")},
            "HOME": str(root / "user"),
            "NO_PROXY": "*",
            "PANPAN_SESSIONS_TITLE": "first-words",
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": url,
        }
        self.kills: Counter[str] = Counter()
        self.left: list[RunningProcess] = []
        """Processes that killed runs left behind."""
        self._suspended: list[subprocess.Popen[bytes]] = []
        self._rng = random.Random(20_261_130)
        command = [sys.executable, "-P", "-m", "panpan"] if IS_SOAK else PREPARED.argv(env=self.environ)
        self._argv = [sys.executable, "-m", "tests.batch.soak_run", str(self.folder.path), *command]

    def run_until_killed(self, how: str) -> None:
        """Run the campaign, kill panpan of attempts, and in the end the process that runs them.

        Args:
            how: "kill", or "suspend": the process is stopped until the next run has taken over.
        """
        process = self._started()
        self._go_on_with_suspended(process)
        if how == "suspend":
            wait_until(lambda: self._is_under_way(process))
        end = time.monotonic() + self._rng.uniform(*RUN_S)
        while time.monotonic() < end and process.poll() is None:
            time.sleep(self._rng.uniform(*PAUSE_S))
            self._kill_a_panpan(process.pid)
        if process.poll() is None:
            self.left += _below(process.pid)
            self.kills[how] += 1
            process.send_signal(signal.SIGSTOP if how == "suspend" else signal.SIGKILL)
            if how == "suspend":
                self._suspended.append(process)
                return
        # what it leaves ends by itself; the next run begins meanwhile
        self._end(process, 0, -signal.SIGKILL)

    def _go_on_with_suspended(self, later: "subprocess.Popen[bytes]") -> None:
        """Let a suspended run go on once the next one has taken over: it ends by itself."""
        while self._suspended:
            wait_until(lambda: self._is_under_way(later))
            process = self._suspended.pop()
            process.send_signal(signal.SIGCONT)
            assert "LeaseLostError" in self._end(process, 1)

    def _is_under_way(self, process: "subprocess.Popen[bytes]") -> bool:
        """True if a run holds the campaign, or has ended already as there was nothing left to do."""
        return process.poll() is not None or _holder(self.folder) == process.pid

    def _end(self, process: "subprocess.Popen[bytes]", *codes: int) -> str:
        said, _ = process.communicate(timeout=600)
        assert process.returncode in codes, said.decode()
        return said.decode()

    def run_to_the_end(self) -> str:
        """Run the campaign with panpan killed now and then, and return how it ended."""
        process = self._started()
        self._go_on_with_suspended(process)
        for _ in range(KILLED_RUNS):
            time.sleep(self._rng.uniform(*PAUSE_S))
            self._kill_a_panpan(process.pid)
        return self._end(process, 0)

    def _started(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            self._argv,
            env=self.environ,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def _kill_a_panpan(self, coordinator: int) -> None:
        found = [one for one in _below(coordinator) if _is_panpan(one.pid)]
        if found:
            with suppress(ProcessLookupError):
                os.kill(self._rng.choice(found).pid, signal.SIGKILL)
                self.kills["panpan"] += 1

    def results(self) -> Sequence[Result]:
        return [result for attempt in self.folder.attempts() if (result := attempt.result()) is not None]


def _below(parent: int) -> Iterator[RunningProcess]:
    return (one for one in running_processes().values() if one.parent == parent)


def _holder(folder: CampaignFolder) -> int:
    found = anyio.run(holder_of, folder.lease)
    return 0 if found is None else found.pid


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def _is_panpan(pid: int) -> bool:
    with suppress(OSError):
        return b"--session-id" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the processes to kill in /proc")
def test_campaign_ends_each_task_once_through_kills(tmp_path: Path) -> None:
    effects = tmp_path / "effects.txt"
    model = Model(effects)
    began = time.monotonic()
    with serving(model) as server:
        soak = Soak(tmp_path, server.url, effects)
        for number in range(KILLED_RUNS):
            soak.run_until_killed("suspend" if number % SUSPENDED_EACH == 1 else "kill")
        said = soak.run_to_the_end()
        assert still_running(soak.left) == []

    assert said.startswith("done "), said
    results = soak.results()
    _tell(soak, results, time.monotonic() - began, f"{len(server.requests)}, {model.looks} of them looks")
    assert Counter(soak.tasks[one.task_id] for one in results) == Counter(soak.tasks.values())
    assert Counter(one.status for one in results) == {"passed": TASKS}
    lines = [json.loads(line) for line in CampaignFolder(soak.folder.path).results_file.read_text().splitlines()]
    assert Counter(soak.tasks[line["task_id"]] for line in lines) == Counter(soak.tasks.values())
    assert Counter(effects.read_text().split()) == Counter(soak.tasks.values())
    assert 0 < sum(one.spent.usd or 0.0 for one in results) <= BUDGET_USD
    assert all(one.spent.usd is not None and one.spent.usd <= LIMIT_USD for one in results)
    assert soak.kills["panpan"] > 0
    assert soak.kills["kill"] > 0


def _tell(soak: Soak, results: Sequence[Result], seconds: float, requests: str) -> None:
    spent = sum(one.spent.usd or 0.0 for one in results)
    tries = Counter(one.tries for one in results)
    print(  # noqa: T201 - the figures of a soak
        f"{len(results)} results in {seconds:.0f} s; killed: {dict(soak.kills)}; requests: {requests}; "
        f"spent ${spent:.3f} of ${BUDGET_USD:.2f}; runs of panpan: {dict(sorted(tries.items()))}"
    )
