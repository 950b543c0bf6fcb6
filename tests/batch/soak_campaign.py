"""A campaign for soaks: each task has one effect, and the scripted model looks before it repeats one.

`PANPAN_SOAK` makes it 200 tasks.
"""

import json
import os
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import Result
from tests.fakes.campaign import frozen_of, make_campaign, task_of
from tests.model_server import RecordedRequest, Reply, Tokens, ToolCall, say

IS_SOAK = "PANPAN_SOAK" in os.environ
TASKS = 200 if IS_SOAK else 12
LIMIT_USD = 0.6
BUDGET_USD = 4 * LIMIT_USD + 0.05 * TASKS
_TOKENS = Tokens(input=2_000, output=100)
_CAMPAIGN = f"""
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
        delay = {"tokens": _TOKENS, "first_delay_s": self._rng.uniform(0, 0.1)}
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


class SoakCampaign:
    """The campaign, and the processes that run it.

    Args:
        root: An empty folder.
        url: Address of the model.
        effects: The file of effects.
    """

    def __init__(self, root: Path, url: str, effects: Path) -> None:
        self.folder = make_campaign(root, _CAMPAIGN)
        tasks = [
            task_of(name, f"Do the effect of {name}.", verify={"command": f"grep -qx {name} {effects}"})
            for name in (f"task-{number:03}" for number in range(TASKS))
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
        self.rng = random.Random(20_261_130)
        self._effects = effects
        self._began = time.monotonic()

    def started(self, argv: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a process that runs the campaign."""
        return subprocess.Popen(
            argv,
            env=self.environ,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def results(self) -> Sequence[Result]:
        return [result for attempt in self.folder.attempts() if (result := attempt.result()) is not None]

    def check(self, said: str, requests: str) -> None:
        """Print the figures; each task ended once, with one effect, within the budget.

        Args:
            said: The last words of the campaign.
            requests: What the model was asked, in words.
        """
        results = self.results()
        spent = sum(one.spent.usd or 0.0 for one in results)
        tries = Counter(one.tries for one in results)
        print(  # noqa: T201 - the figures of a soak
            f"{len(results)} results in {time.monotonic() - self._began:.0f} s; killed: {dict(self.kills)}; "
            f"requests: {requests}; spent ${spent:.3f} of ${BUDGET_USD:.2f}; "
            f"runs of panpan: {dict(sorted(tries.items()))}"
        )
        every = Counter(self.tasks.values())
        assert said.startswith("done "), said
        assert Counter(self.tasks[one.task_id] for one in results) == every
        assert Counter(one.status for one in results) == {"passed": TASKS}
        lines = [json.loads(line) for line in CampaignFolder(self.folder.path).results_file.read_text().splitlines()]
        assert Counter(self.tasks[line["task_id"]] for line in lines) == every
        assert Counter(self._effects.read_text().split()) == every
        assert 0 < spent <= BUDGET_USD
        assert all(one.spent.usd is not None and one.spent.usd <= LIMIT_USD for one in results)
