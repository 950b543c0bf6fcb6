"""Requests that editors and dashboards on the Agent SDK send to a running session."""

import base64
import json
from threading import Event
from typing import Any

import pytest

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.sdk_program import running
from tests.model_server import call, say, serving
from tests.model_server.script import Hold

MESSAGES = ("11111111-2222-4333-8444-555555555555", "22222222-2222-4333-8444-555555555555")
BYPASS = ("--permission-mode", "bypassPermissions")


def test_running_call_is_moved_to_the_background(panpan: Panpan) -> None:
    command = {"command": "echo begun; touch made; sleep 300", "description": "Wait"}
    with serving(lambda request: say("done") if len(request.messages) > 1 else call("Bash", command)) as server:
        panpan.use(server)
        with running(panpan, *BYPASS) as program:
            assert program.call("background_tasks")["response"] == {"backgrounded": False}
            program.say("go")
            wait_until(lambda: (panpan.workspace / "made").exists())
            assert program.call("background_tasks", tool_use_id="nope")["response"] == {"backgrounded": False}
            assert program.call("background_tasks")["response"] == {"backgrounded": True}
            assert program.result()["result"] == "done"
            (task,) = [line["task_id"] for line in program.seen if line.get("subtype") == "task_started"]
            output = program.call("get_task_output", task_id=task)["response"]
            assert program.call("stop_task", task_id=task)["subtype"] == "success"
            assert program.end().code == 0

    assert output == {"output": "begun\n", "total_bytes": 6, "truncated": False}


def test_output_of_a_task_is_its_end(panpan: Panpan) -> None:
    command = {"command": "seq 1 10000", "description": "Count", "run_in_background": True}
    with serving(lambda request: say("done") if len(request.messages) > 1 else call("Bash", command)) as server:
        panpan.use(server)
        with running(panpan, *BYPASS) as program:
            program.say("go")
            task = program.system("task_notification")["task_id"]
            output = program.call("get_task_output", task_id=task)["response"]
            unknown = program.call("get_task_output", task_id="nope")
            program.end()

    whole = "".join(f"{number}\n" for number in range(1, 10_001))
    assert whole.endswith(output["output"])
    assert 8_000 < len(output["output"]) <= 8_192
    assert (output["total_bytes"], output["truncated"]) == (len(whole), True)
    assert unknown["subtype"] == "error"


@pytest.mark.parametrize("priority", ["later", "next"])
def test_message_that_waits_is_taken_back(panpan: Panpan, priority: str) -> None:
    held = Event()
    with serving([say("one", faults=(Hold("text", held),)), say("two")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("first")
            wait_until(lambda: server.requests)
            program.say("second", uuid=MESSAGES[0], priority=priority)
            taken = program.call("cancel_async_message", message_uuid=MESSAGES[0])["response"]
            again = program.call("cancel_async_message", message_uuid=MESSAGES[0])["response"]
            program.say("third", uuid=MESSAGES[1])
            held.set()
            program.result()
            assert program.result()["result"] == "two"
            late = program.call("cancel_async_message", message_uuid=MESSAGES[1])["response"]
            assert program.end().code == 0

    assert [one["cancelled"] for one in (taken, again, late)] == [True, False, False]
    assert "second" not in str(server.requests[-1].messages)
    assert "third" in str(server.requests[-1].messages)


def test_message_that_was_taken_back_may_be_sent_again(panpan: Panpan) -> None:
    held = Event()
    with serving([say("one", faults=(Hold("text", held),)), say("two")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("first")
            wait_until(lambda: server.requests)
            for _ in range(2):
                program.say("second", uuid=MESSAGES[0])
                assert program.call("cancel_async_message", message_uuid=MESSAGES[0])["response"]["cancelled"]
            program.say("second", uuid=MESSAGES[0])
            held.set()
            program.result()
            assert program.result()["result"] == "two"
            program.end()


def test_file_of_the_workspace_is_read(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("ä line\n")
    (panpan.workspace / "b.bin").write_bytes(b"\xff\x00b")
    with serving([]) as server:
        panpan.use(server)
        with running(panpan) as program:
            text = program.call("read_file", path="a.txt")["response"]
            part = program.call("read_file", path="a.txt", max_bytes=1)["response"]
            lossy = program.call("read_file", path="b.bin")["response"]
            exact = program.call("read_file", path="b.bin", encoding="base64")["response"]
            program.end()

    place = str(panpan.workspace.resolve() / "a.txt")
    assert text == {"contents": "ä line\n", "absPath": place, "lossy": False}
    assert part == {"contents": "\N{REPLACEMENT CHARACTER}", "absPath": place, "lossy": True, "truncated": True}
    assert lossy["lossy"] is True
    assert base64.b64decode(exact["contents"]) == b"\xff\x00b"
    assert "lossy" not in exact


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"path": "../secret.txt"}, "outside the workspace"),
        ({"path": "link.txt"}, "outside the workspace"),
        ({"path": "/etc/passwd"}, "outside the workspace"),
        ({"path": ".env"}, "may hold secrets"),
        ({"path": "closed/a.txt"}, "a rule is about reading"),
        ({"path": "none.txt"}, "none.txt"),
        ({"path": "."}, "not a regular file"),
        ({"path": "a.txt", "max_bytes": -1}, "no number of bytes"),
        ({"path": "a.txt", "encoding": "latin-1"}, "encodings"),
        ({}, "the request read_file needs path"),
    ],
)
def test_file_that_may_not_be_read_is_refused(panpan: Panpan, fields: dict[str, Any], why: str) -> None:
    (panpan.workspace.parent / "secret.txt").write_text("s\n")
    (panpan.workspace / "link.txt").symlink_to("../secret.txt")
    (panpan.workspace / ".env").write_text("KEY=1\n")
    (panpan.workspace / "closed").mkdir()
    (panpan.workspace / "closed" / "a.txt").write_text("c\n")
    with serving([]) as server:
        panpan.use(server)
        with running(panpan, "--disallowedTools", "Read(closed/**)") as program:
            answer = program.call("read_file", **fields)
            program.end()

    assert answer["subtype"] == "error"
    assert why in answer["error"]


def test_models_with_a_key_are_listed_and_usable(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            models = program.call("list_models")["response"]["models"]
            assert program.call("set_model", model=models[1]["value"])["subtype"] == "success"
            program.say("go")
            program.result()
            program.end()

    assert models[0]["value"] == "default"
    assert all({"value", "displayName", "description"} <= one.keys() for one in models)
    assert {one["value"].partition("/")[0] for one in models[1:]} == {"anthropic"}
    assert server.requests[0].body["model"] == models[1]["resolvedModel"]


def test_settings_of_the_program_count_for_the_next_turn(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            given = {"model": "claude-opus-4-5", "effortLevel": "low"}
            assert program.call("apply_flag_settings", settings=given)["subtype"] == "success"
            program.say("go")
            program.result()
            refused = [
                program.call("apply_flag_settings", settings=one)["error"]
                for one in ({"effortLevel": "huge"}, {"env": {"A": "b"}, "model": "x"}, [])
            ]
            program.end()

    assert server.requests[0].body["model"] == "claude-opus-4-5"
    assert server.requests[0].body["output_config"] == {"effort": "low"}
    assert "one of low" in refused[0]
    assert "cannot change env" in refused[1]
    assert "is not as it should be" in refused[2]


def test_settings_in_force_are_shown_without_secrets(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        panpan.home.mkdir(exist_ok=True)
        settings = 'effort = "low"\n[web]\nproxy = "http://user:pass-word@127.0.0.1:9"\n'
        (panpan.home / "settings.toml").write_text(settings)
        with running(panpan, "--max-turns", "7") as program:
            program.call("apply_flag_settings", settings={"effortLevel": "high"})
            found = program.call("get_settings")["response"]
            program.end()

    of_source = {one["source"]: one["settings"] for one in found["sources"]}
    assert found["effective"]["max_rounds"] == of_source["flagSettings"]["max_rounds"] == 7
    assert of_source["userSettings"]["effort"] == "low"
    assert found["applied"]["effort"] == "high"
    assert found["effective"]["permission"]["mode"] == "default"
    assert "pass-word" not in json.dumps(found)


def test_files_are_suggested_as_behind_an_at_sign(panpan: Panpan) -> None:
    (panpan.workspace / "src").mkdir()
    for name in ("src/main.py", "src/other.py", ".env"):
        (panpan.workspace / name).write_text("x\n")
    with serving([]) as server:
        panpan.use(server)
        with running(panpan) as program:
            found = [program.call("file_suggestions", query=query)["response"] for query in ("mainpy", "", "x" * 300)]
            refused = program.call("file_suggestions")
            program.end()

    assert found[0] == {"suggestions": [{"path": "src/main.py"}]}
    assert {one["path"] for one in found[1]["suggestions"]} == {"src/", "src/main.py", "src/other.py"}
    assert found[2] == {"suggestions": []}
    assert refused["error"] == "the request file_suggestions needs query"


def test_hooks_of_files_and_of_the_program_are_listed(panpan: Panpan) -> None:
    hook = {"type": "command", "command": "check \x1b[31m", "if": "Bash(git *)", "timeout": 5, "async": True}
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "done?"}]}],
                       "PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}}  # fmt: skip
    with serving([]) as server:
        panpan.use(server)
        panpan.home.mkdir(exist_ok=True)
        (panpan.home / "hooks.json").write_text(json.dumps(hooks))
        with running(panpan) as program:
            program.call("initialize", hooks={"Stop": [{"hookCallbackIds": ["hook_0"]}]})
            found = program.call("get_hooks_listing")["response"]
            program.end()

    rows = [(one["event"], one["matcher"], one["source"], one["type"]) for one in found["hooks"]]
    assert rows == [
        ("PreToolUse", "Bash", "userSettings", "command"),
        ("Stop", "", "userSettings", "prompt"),
        ("Stop", "", "sessionHook", "callback"),
    ]
    first = found["hooks"][0]
    assert (first["condition"], first["timeout"], first["runsInBackground"]) == ("Bash(git *)", 5, True)
    assert "\x1b" not in first["commandText"]
    assert "hooks.json:1" in first["sourceLabel"]
    events = {one["name"]: (one["hookCount"], one["supportsMatcher"]) for one in found["events"]}
    assert events == {"PreToolUse": (1, True), "Stop": (2, False)}
    assert len(found["eventCatalog"]) > 20
    assert found["policy"]["allDisabled"] is False
