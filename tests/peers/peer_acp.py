"""Clients of the Agent Client Protocol that others wrote: acpx, and the library of the protocol's authors for Node."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.mcp.place import Place, Use
from tests.faces.mcp_server.processes import a_day, running, until
from tests.peers.installs import installed_once
from tests.peers.node import install_packages, node

ACPX = "acpx@0.19.1"
LIBRARY = "@agentclientprotocol/sdk@2.4.0"
WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
EDIT: Use = ("Edit", {"file_path": "new.txt", "old_string": "hello", "new_string": "good morning"})
ASK: Use = (
    "AskUserQuestion",
    {
        "questions": [
            {
                "header": "Colour",
                "question": "Which colour?",
                "options": [{"label": "Red", "description": "a"}, {"label": "Blue", "description": "b"}],
                "multiSelect": False,
            }
        ]
    },
)
SLEEP: Use = ("Bash", {"command": "sleep 86400", "description": "Wait"})


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages, 25 MB; without a registry the tests are skipped."""
    folder = installed_once(tmp_path_factory, "acp", lambda folder: install_packages(folder, [ACPX, LIBRARY]))
    return folder / "node_modules"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path.resolve())
    place.env["PATH"] = f"{Path(node()).parent}:{os.environ['PATH']}"
    return place


def agent(place: Place, *uses: Any) -> list[str]:
    """Return the command line of the agent."""
    options = ["--model", place.tape(*uses), "--sandbox", "off", "--allowedTools", "Bash(sleep *)"]
    return [sys.executable, "-m", "panpan", *options, "acp"]


class Acpx:
    """Runs acpx with panpan as its agent."""

    def __init__(self, packages: Path, place: Place, *uses: Any) -> None:
        self._words = [node(), str(packages / ".bin/acpx"), "--agent", shlex.join(agent(place, *uses))]
        self._place = place

    def run(self, *words: str, code: int = 0) -> str:
        """Return the output of a command, which has to end with a code."""
        env = self._place.env
        done = subprocess.run(
            [*self._words, *words], cwd=self._place.root, env=env, capture_output=True, text=True, timeout=90
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


def test_acpx_runs_a_prompt_and_allows(packages: Path, place: Place) -> None:
    said = Acpx(packages, place, WRITE, "all done").run("--approve-all", "exec", "write it")

    assert "all done" in said
    assert "[done] end_turn" in said
    assert (place.root / "new.txt").read_text() == "hello\n"


def test_acpx_denies_and_gets_json(packages: Path, place: Place) -> None:
    acpx = Acpx(packages, place, WRITE, "a pity")
    out = acpx.run("--deny-all", "--format", "json", "exec", "write it", code=5)  # 5: something was denied

    messages = [json.loads(line) for line in out.splitlines()]
    assert messages[-1]["result"]["stopReason"] == "end_turn"
    assert not (place.root / "new.txt").exists()


async def test_acpx_keeps_a_session_and_cancels(packages: Path, place: Place) -> None:
    seconds = a_day()
    sleep: Use = ("Bash", {"command": f"sleep {seconds}", "description": "Wait"})
    acpx = Acpx(packages, place, "the first", sleep)
    try:
        acpx.run("sessions", "new")
        assert "the first" in acpx.run("--approve-all", "prompt", "one")
        assert "mode set: plan" in acpx.run("set-mode", "plan")
        assert "config set: effort=high" in acpx.run("set", "effort", "high")
        acpx.run("set-mode", "acceptEdits")
        acpx.run("--approve-all", "prompt", "--no-wait", "wait")
        await until(lambda: bool(running(f"sleep {seconds}")))
        assert "cancel requested" in acpx.run("cancel")
        await until(lambda: not running(f"sleep {seconds}"))
        assert "one" in acpx.run("sessions", "list")
    finally:
        acpx.run("sessions", "close")


def test_library_of_the_authors_understands_every_message(packages: Path, place: Place) -> None:
    script = Path(__file__).parent / "acp_client.mjs"
    library = packages / "@agentclientprotocol/sdk/dist/v1/stable/acp.js"
    words = [node(), str(script), str(library), str(place.root), *agent(place, ASK, WRITE, EDIT, "said", SLEEP)]
    done = subprocess.run(words, cwd=place.root, env=place.env, capture_output=True, text=True, timeout=90)

    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    kinds = [one if isinstance(one, str) else one["sessionUpdate"] for one in seen["updates"]]
    assert seen["initialized"]["protocolVersion"] == 1
    assert seen["first"]["stopReason"] == "end_turn"
    assert seen["second"]["stopReason"] == "cancelled"
    assert [one["toolCall"]["title"] for one in seen["asked"]] == ["Write new.txt", "Edit new.txt"]
    assert seen["written"] == ["good morning\n"]
    assert (place.root / "new.txt").read_text() == "good morning\n"
    assert len(seen["forms"]) == 1
    assert seen["session"]["configOptions"][-1]["type"] == "boolean"
    assert "available_commands_update" in kinds[:2]
    assert kinds[kinds.index("loaded") :].count("user_message_chunk") == 2
    assert "there is no mode 'nonsense'" in seen["error"]
    assert "no key is stored" in seen["logout"]


def test_draft_client_of_the_authors_understands_every_message(packages: Path, place: Place) -> None:
    script = Path(__file__).parent / "acp_v2_client.mjs"
    library = packages / "@agentclientprotocol/sdk/dist/v2/stable/acp.js"
    command = [*agent(place, ASK, WRITE, "said", SLEEP), "--protocol", "2"]
    words = [node(), str(script), str(library), str(place.root), *command]
    done = subprocess.run(words, cwd=place.root, env=place.env, capture_output=True, text=True, timeout=90)

    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    kinds = [one if isinstance(one, str) else one["sessionUpdate"] for one in seen["updates"]]
    said = [one["messageId"] for one in seen["updates"] if one != "resumed" and one["sessionUpdate"] == "user_message"]
    (asked,) = seen["asked"]
    assert seen["initialized"]["protocolVersion"] == 2
    assert (seen["firstIdle"]["stopReason"], seen["secondIdle"]["stopReason"]) == ("end_turn", "cancelled")
    assert said == [seen["first"]["messageId"], seen["second"]["messageId"]] * 2
    assert asked["title"] == "Write new.txt"
    assert asked["subject"]["toolCall"]["content"][0]["changes"][0]["operation"] == "add"
    assert len(seen["forms"]) == 1
    assert "agent_message" in kinds[kinds.index("resumed") :]
    assert [one["code"] for one in seen["errors"]] == [-32602, -32002]
    assert [one["sessionId"] for one in seen["listed"]["sessions"]] == [seen["session"]["sessionId"]]
