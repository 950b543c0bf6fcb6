"""A prompt goes in, the files change: the runs that every user makes first, through the installed command."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import ToolCall, call, calls, say, serving

PYPROJECT = """\
[project]
name = "warmup"
dependencies = ["numpy>=2", "torch>=2.4"]
"""


@pytest.fixture(params=["anthropic", "openai"])
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_list_and_read(panpan: Panpan, dialect: str) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")
    script = [
        calls(ToolCall("LS", {}), ToolCall("Read", {"file_path": "notes.txt"}), text="I look."),
        say("It is swordfish."),
    ]

    with serving(script) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "what is in the notes?")

    assert (done.code, done.stdout, done.stderr) == (0, "I look.\nIt is swordfish.\n", "")
    last_request = json.dumps(server.requests[-1].messages)
    assert "notes.txt (26 B)" in last_request
    assert "the password is swordfish" in last_request


def test_write_and_patch(panpan: Panpan, dialect: str) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
    script = [
        call("Write", {"file_path": "a.py", "content": "x = 1\n"}),
        call("Patch", {"patch": patch}),
        say("Written and patched."),
    ]

    with serving(script) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "write a.py, then make x 2", "--permission-mode", "acceptEdits")

    assert done.code == 0
    assert (panpan.workspace / "a.py").read_text() == "x = 2\n"


def test_bash_runs_python_when_it_is_allowed(panpan: Panpan, dialect: str) -> None:
    command = 'python3 -c "print(1)"'
    with serving([call("Bash", {"command": command}), say("It printed 1.")]) as server:
        panpan.use(server, dialect=dialect)
        done = panpan.run("-p", "run it", "--allowedTools", f"Bash({command})", "-f", "stream-json")

    results = [block for line in done.lines if line["type"] == "user" for block in line["message"]["content"]]
    assert [(result["content"][0]["text"], result["is_error"]) for result in results] == [("1", False)]
    assert done.result["result"] == "It printed 1."


def test_session_file_has_all_records_of_a_run(panpan: Panpan) -> None:
    with serving([call("LS", {}), say("Nothing there.")]) as server:
        panpan.use(server)
        panpan.run("-p", "look around")

    records = panpan.records()
    assert [(record["type"], record.get("subtype")) for record in records] == [
        ("system", "session_start"),
        ("system", "opened"),
        ("user", None),
        ("system", "system_reminder"),
        ("assistant", None),
        ("user", None),
        ("assistant", None),
    ]
    (path,) = panpan.session_files()
    assert path.stat().st_mode & 0o777 == 0o600
    assert {record["sessionId"] for record in records} == {path.stem}


def test_reading_the_package_name_asks_nothing(panpan: Panpan) -> None:
    (panpan.workspace / "pyproject.toml").write_text(PYPROJECT)
    with serving([call("Read", {"file_path": "pyproject.toml"}), say("The package is called warmup.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "Read the file pyproject.toml and tell me the package name", "-f", "json")

    assert done.result["result"] == "The package is called warmup."
    assert done.result["permission_denials"] == []


def test_creating_a_file_needs_a_yes(panpan: Panpan) -> None:
    script = [call("Write", {"file_path": "test.txt", "content": "Hello World"}), say("Done, or not.")]
    prompt = 'Create a file test.txt with content "Hello World"'

    with serving(script * 2) as server:
        panpan.use(server)
        without = panpan.run("-p", prompt, "-f", "json")
        file_without = (panpan.workspace / "test.txt").exists()
        with_yes = panpan.run("-p", prompt, "-f", "json", "--yes")

    assert (without.code, file_without) == (5, False)
    assert "1 call was blocked (Write)" in without.stderr
    assert with_yes.stderr == ""
    assert [denial["tool_name"] for denial in without.result["permission_denials"]] == ["Write"]
    refused = server.requests[1].messages[-1]["content"][0]
    assert refused["is_error"]
    assert "was not run" in json.dumps(refused["content"])
    assert with_yes.result["permission_denials"] == []
    assert (panpan.workspace / "test.txt").read_text() == "Hello World"


def test_several_steps_read_the_dependencies_and_list_them(panpan: Panpan) -> None:
    (panpan.workspace / "pyproject.toml").write_text(PYPROJECT)
    script = [
        call("Read", {"file_path": "pyproject.toml"}),
        call("Write", {"file_path": "deps.txt", "content": "numpy>=2\ntorch>=2.4\n"}),
        say("deps.txt lists both."),
    ]

    with serving(script) as server:
        panpan.use(server)
        done = panpan.run("-p", "Read pyproject.toml, find all dependencies, create deps.txt", "-y", "-f", "json")

    assert done.result["num_turns"] == 3
    assert (panpan.workspace / "deps.txt").read_text() == "numpy>=2\ntorch>=2.4\n"


def test_bad_calls_are_answered_beside_a_good_one(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("a\n")
    bad = [
        ToolCall("Raed", {"file_path": "a.txt"}),
        ToolCall("Read", {"path": "a.txt"}),
        ToolCall("Read", arguments='{"file_path": "a.tx'),
        ToolCall("Read", arguments="[1]"),
        ToolCall("Read", {"file_path": "a.txt"}),
    ]
    with serving([calls(*bad), say("ok")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "go")

    assert done.code == 0
    results = server.requests[1].messages[-1]["content"]
    assert [result.get("is_error", False) for result in results] == [True, True, True, True, False]


def test_demo_fixes_its_bug_with_real_tools(panpan: Panpan, tmp_path: Path) -> None:
    panpan.env["TMPDIR"] = str(tmp_path)

    done = panpan.run("demo", "--fast", "--keep")

    assert done.code == 0, done.stderr
    assert "Checked apart from the model: python3 -m unittest says 'OK'." in done.stdout
    (schedule,) = tmp_path.glob("panpan-demo-*/warmup/schedule.py")
    assert "/ (total_steps - warmup_steps)" in schedule.read_text()
    assert f"{schedule.parent}  (it stays)" in done.stdout
    assert not panpan.home.exists(), "the demo leaves the user's home alone"


def test_demo_leaves_nothing_behind(panpan: Panpan, tmp_path: Path) -> None:
    panpan.env["TMPDIR"] = str(tmp_path / "scratch")
    (tmp_path / "scratch").mkdir()

    done = panpan.run("demo", "--fast")

    assert done.code == 0, done.stderr
    assert "(removed at the end; --keep leaves it)" in done.stdout
    assert list((tmp_path / "scratch").iterdir()) == []
