"""The SDK of OpenCode with panpan as its server: a program in Node, and the SDK's types for all that it gets."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.model_server import ModelServer, call, say, serving
from tests.peers.installs import installed_once
from tests.peers.node import install_packages, node
from tests.peers.peer_agent_sdk import environment
from tests.prepared_command import COMMAND

SDK = "@opencode-ai/sdk@1.19.3"
TYPESCRIPT = "typescript@5.9.3"
TOKEN = "a-token-of-the-tests-0123456789"
PROGRAM_S = 120
CHOICES = [{"label": "Red", "description": "a"}, {"label": "Blue", "description": "b"}]
ASK = {"questions": [{"header": "Colour", "question": "Which?", "options": CHOICES, "multiSelect": False}]}
SCRIPT = (
    call("Write", {"file_path": "new.txt", "content": "hello\n"}),
    call("TodoWrite", {"todos": [{"content": "Try it", "activeForm": "Trying it", "status": "in_progress"}]}),
    say("all done"),
    call("AskUserQuestion", ASK),
    say("blue it is"),
    call("Bash", {"command": "sleep 86400", "description": "Wait"}),
)

OLDER: Mapping[str, str] = {
    "session": "Session",
    "first": "SessionPromptResponses[200]",
    "messages": "SessionMessagesResponses[200]",
    "sessions": "Session[]",
    "todo": "Todo[]",
    "config": "Config",
    "olderProviders": "ConfigProvidersResponses[200]",
    "files": "string[]",
    "file": "FileContent",
    "fileStatus": "File[]",
}
"""Types of the older client, by the name of what the program got."""
NEWER: Mapping[str, str] = {
    "session": "Session",
    "second": "SessionPromptResponses[200]",
    "newerMessages": "SessionMessagesResponses[200]",
    "diff": "SessionDiffResponses[200]",
    "status": "SessionStatusResponses[200]",
    "providers": "ConfigProvidersResponses[200]",
    "agents": "AppAgentsResponses[200]",
    "project": "Project",
    "path": "Path",
    "permissions": "PermissionRequest[]",
    "questions": "QuestionRequest[]",
}


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages, 25 MB; without a registry the tests are skipped."""
    folder = installed_once(tmp_path_factory, "opencode", lambda folder: install_packages(folder, [SDK, TYPESCRIPT]))
    return folder / "node_modules"


@contextmanager
def server_of(folder: Path, model: ModelServer) -> Iterator[str]:
    """Run the installed `panpan serve` inside the block, and yield its address."""
    env = environment(folder, model) | {"PANPAN_SERVER_TOKEN": TOKEN}
    options = ["--sandbox", "off", "--allowedTools", "Bash(sleep *)", "serve"]
    with subprocess.Popen(
        [COMMAND, *options], cwd=folder / "workspace", env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().strip().removeprefix("panpan: serving at ")
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def seen(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return all that the program got."""
    folder = tmp_path_factory.mktemp("program")
    script = Path(__file__).parent / "opencode_client.mjs"
    with serving(SCRIPT) as model, server_of(folder, model) as address:
        words = [node(), script, packages / "@opencode-ai/sdk", address, TOKEN]
        done = subprocess.run(words, capture_output=True, text=True, timeout=PROGRAM_S)
    assert (done.returncode, done.stderr) == (0, "")
    return {"folder": str(folder / "workspace"), **json.loads(done.stdout)}


def of(seen: Any, name: str) -> list[Any]:
    return [event["properties"] for event in seen["events"] if event["type"] == name]


def test_program_sees_parts_and_deltas(seen: Any) -> None:
    (text,) = [part for part in seen["first"]["parts"] if part["type"] == "text"]
    deltas = [one["delta"] for one in of(seen, "message.part.delta") if one["partID"] == text["id"]]
    parts = [part for one in seen["messages"] for part in one["parts"]]
    told = {one["part"]["id"]: one["part"] for one in of(seen, "message.part.updated")}

    assert text["text"] == "".join(deltas) == "all done"
    assert {part["id"] for part in parts} <= set(told)
    assert [part["tool"] for part in parts if part["type"] == "tool"] == [
        "Write",
        "TodoWrite",
        "AskUserQuestion",
        "Bash",
    ]
    assert seen["messages"] == seen["newerMessages"]


def test_program_answers_and_files_change(seen: Any) -> None:
    assert seen["answers"] == ["once"]
    assert [one["response"] for one in of(seen, "permission.replied")] == ["once"]
    assert [one["file"] for one in of(seen, "file.edited")] == [f"{seen['folder']}/new.txt"]
    assert seen["file"] == {"type": "text", "content": "hello\n"}
    assert seen["second"]["parts"][1]["text"] == "blue it is"
    assert [(one["content"], one["status"]) for one in seen["todo"]] == [("Try it", "in_progress")]
    assert seen["diff"] == [{"file": "new.txt", "additions": 1, "deletions": 0, "status": "added"}]


def test_program_aborts_a_turn(seen: Any) -> None:
    last = seen["messages"][-1]

    assert [one["error"]["name"] for one in of(seen, "session.error")] == ["MessageAbortedError"]
    assert last["parts"][1]["state"]["status"] == "error"
    assert seen["submitted"] is True
    assert "is not in the subset" in seen["refused"]["data"]["message"]


def test_types_of_the_sdk_fit_all_that_it_gets(packages: Path, seen: Any, tmp_path: Path) -> None:
    lines = [
        f'import type * as Older from "{packages}/@opencode-ai/sdk/dist/gen/types.gen.js"',
        f'import type * as Newer from "{packages}/@opencode-ai/sdk/dist/v2/gen/types.gen.js"',
        "const fits = <T>() => <V extends T>(value: V): V => value",  # further fields are let pass
    ]
    values = [("Older", name, kind) for name, kind in OLDER.items()]
    values += [("Newer", name, kind) for name, kind in NEWER.items()]
    lines += [
        f"fits<{kind if kind == 'string[]' else f'{client}.{kind}'}>()({json.dumps(seen[name])})  // {name}"
        for client, name, kind in values
    ]
    only_newer = {"message.part.delta", "session.diff", "permission.asked", "question.asked", "question.replied"}
    events = [("Newer", one) for one in seen["newer"] if one["type"] != "permission.updated"]
    events += [("Older", one) for one in seen["events"] if one["type"] not in only_newer]
    lines += [f"fits<{client}.Event>()({json.dumps(one)})  // {one['type']}" for client, one in events]
    (tmp_path / "check.ts").write_text("\n".join(lines))
    options = ["--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022"]
    words = [node(), packages / "typescript/bin/tsc", *options, tmp_path / "check.ts"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PROGRAM_S)

    assert done.returncode == 0, done.stdout[:8_000]
