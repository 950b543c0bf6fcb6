"""Record with the installed command and a model over HTTP, and play it again in each mode, without the model."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from panpan.faces.plain.line_screen import PROMPT
from tests.e2e.conftest import KEY, Panpan
from tests.e2e.test_line_loop import Terminal
from tests.model_server import call, calls, say, serving
from tests.model_server.script import ToolCall

ASKED = "make made.txt"
COMMAND = "cat notes.txt > made.txt && cat made.txt"
SCRIPT = [
    calls(ToolCall("Read", {"file_path": "notes.txt"}), ToolCall("LS", {}), text="I look first."),
    call("Bash", {"command": COMMAND}),
    say("It is made."),
]


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cassette of a headless run, somewhere else."""
    folder = tmp_path_factory.mktemp("recording")
    command = Panpan(folder / "project", folder / "user" / ".panpan")
    for made in (command.workspace, command.home.parent):
        made.mkdir()
    (command.workspace / "notes.txt").write_text("the password is swordfish\n")
    with serving(list(SCRIPT)) as server:
        command.use(server)
        done = command.run("record", str(folder / "made.jsonl"), "-p", ASKED, "--yes")
    command.stop_all()
    assert (done.code, done.stdout) == (0, "I look first.\nIt is made.\n"), done.stderr
    return folder / "made.jsonl"


@pytest.fixture
def recorded(panpan: Panpan, tape: Path) -> Path:
    """The cassette, beside a workspace like that in which it was recorded."""
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")
    return shutil.copy(tape, panpan.workspace.parent / "made.jsonl")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_cassette_is_private_and_holds_no_key(panpan: Panpan, recorded: Path) -> None:
    text = recorded.read_text()
    stream = next(line for line in lines_of(recorded) if line["type"] == "cassette_reply")

    assert recorded.stat().st_mode & 0o777 == 0o600
    assert KEY not in text
    assert "swordfish" in text
    assert "I look first." in "".join(event[2] for _, event in stream["events"] if isinstance(event, list))


def test_cassette_names_the_chosen_folder(panpan: Panpan, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with serving([say("Here.")] * 2) as server:
        panpan.use(server)
        outer = panpan.run("--cwd", str(tmp_path / "one"), "record", "outer.jsonl", "-p", "where?")
        inner = panpan.run("record", "inner.jsonl", "-p", "where?", "--cwd", str(tmp_path / "two"))

    assert (outer.code, inner.code) == (0, 0), outer.stderr + inner.stderr
    assert lines_of(panpan.workspace / "outer.jsonl")[0]["workspace"] == str(tmp_path / "one")
    assert lines_of(panpan.workspace / "inner.jsonl")[0]["workspace"] == str(tmp_path / "two")


def test_record_does_not_overwrite_a_file(panpan: Panpan, recorded: Path) -> None:
    before = recorded.read_bytes()

    done = panpan.run("--record", str(recorded), "-p", ASKED, "--model", f"cassette:{recorded}")

    assert done.code == 2
    assert "exists already" in done.stderr
    assert recorded.read_bytes() == before


def test_replay_is_the_same_in_each_mode(panpan: Panpan, recorded: Path) -> None:
    strict = panpan.run("replay", str(recorded))
    semantic = panpan.run("replay", str(recorded), "--mode", "semantic", "--json")
    live = panpan.run("replay", str(recorded), "--mode", "live-tools", "--json")

    assert strict.code == 0, strict.stdout + strict.stderr
    assert f"❯ {ASKED}" in strict.stdout
    assert "same as recorded (strict): 1 turn, 3 requests, 3 calls" in strict.stdout
    assert (semantic.code, live.code) == (0, 0), live.stdout + live.stderr
    result = json.loads(semantic.stdout)
    assert (result["same"], result["divergence"]) == (True, None)
    assert f"transcript sha256 {result['transcript_sha256']}" in strict.stdout
    assert json.loads(live.stdout)["other_texts"] == []
    assert not (panpan.workspace / "made.txt").exists()


def test_replay_in_place_changes_files(panpan: Panpan, recorded: Path) -> None:
    done = panpan.run("replay", str(recorded), "--mode", "live-tools", "--in-place")

    assert done.code == 0, done.stdout + done.stderr
    assert (panpan.workspace / "made.txt").read_text() == "the password is swordfish\n"


def test_replay_is_the_same_in_another_home_and_folder(panpan: Panpan, recorded: Path, tmp_path: Path) -> None:
    first = panpan.run("replay", str(recorded), "--json")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other = Panpan(elsewhere, tmp_path / "other" / ".panpan", {"TZ": "Pacific/Kiritimati"})
    shutil.rmtree(panpan.workspace)

    again = other.run("replay", str(recorded), "--json")
    other.stop_all()

    assert (first.code, again.code) == (0, 0), again.stdout
    assert first.stdout == again.stdout


def test_replay_names_a_changed_prompt(panpan: Panpan, recorded: Path) -> None:
    changed = recorded.with_name("changed.jsonl")
    lines = lines_of(recorded)
    for line in lines:
        if line["type"] == "user" and line["message"]["content"][0].get("text") == ASKED:
            line["message"]["content"][0]["text"] = "make nothing"
        if line["type"] == "cassette_request" and line["number"] == 1:
            line["messages"][0] = {"role": "user", "content": [{"type": "text", "text": ASKED}]}
    changed.write_text("".join(json.dumps(line) + "\n" for line in lines))

    done = panpan.run("replay", str(changed), "-q")

    assert done.code == 1
    assert "different (strict): request 1 differs in messages[0].content[0].text" in done.stdout
    assert "  -make made.txt\n  +make nothing" in done.stdout


def test_cassette_is_a_model_for_any_run(panpan: Panpan, recorded: Path) -> None:
    done = panpan.run("-p", "anything", "--yes", "--model", f"cassette:{recorded}")

    assert (done.code, done.stdout) == (0, "I look first.\nIt is made.\n"), done.stderr


def test_replay_with_another_model_compares_its_calls(panpan: Panpan, recorded: Path) -> None:
    others = [calls(ToolCall("Read", {"file_path": "notes.txt"}), ToolCall("LS", {}), text="Let me see.")]
    ask = ("replay", str(recorded), "--mode", "semantic", "--model", "openai/gpt-test", "--json")

    with serving([*others, call("Bash", {"command": COMMAND}), say("So it is.")]) as server:
        panpan.use(server, dialect="openai")
        same = panpan.run(*ask)
    with serving([*others, call("Bash", {"command": "ls"})]) as server:
        panpan.use(server, dialect="openai")
        other = panpan.run(*ask)

    assert same.code == 0, same.stdout + same.stderr
    divergence = json.loads(other.stdout)["divergence"]
    assert other.code == 1
    assert (divergence["what"], divergence["field"]) == ("the reply to request 2", "calls[0].input.command")
    assert (divergence["recorded"], divergence["now"]) == (COMMAND, "ls")


def test_fork_goes_on_from_a_round_with_another_model(panpan: Panpan, recorded: Path) -> None:
    with serving([say("Another way.")]) as server:
        panpan.use(server, dialect="openai")
        done = panpan.run("fork", str(recorded), "--at", "1", "--model", "openai/gpt-test", "-p")
        request = json.dumps(server.requests[0].messages)

    assert done.code == 0, done.stderr
    assert done.stdout == "Another way.\n"
    assert "begins with 1 recorded round\n" in done.stderr
    assert ASKED in request
    assert "the password is swordfish" in request
    assert "Go on." in request
    assert COMMAND not in request


def test_fork_at_0_sends_the_first_prompt(panpan: Panpan, recorded: Path) -> None:
    with serving([say("From the start.")]) as server:
        panpan.use(server)
        done = panpan.run("fork", str(recorded), "--at", "0", "-p")
        request = json.dumps(server.requests[0].messages)

    assert (done.code, done.stdout) == (0, "From the start.\n"), done.stderr
    assert ASKED in request
    assert panpan.run("fork", str(recorded), "--at", "4", "-p").code == 2


def test_replay_refuses_a_file_that_is_no_cassette(panpan: Panpan) -> None:
    (panpan.workspace / "no.jsonl").write_text('{"type": "user"}\n')

    done = panpan.run("replay", "no.jsonl")

    assert done.code == 2
    assert "no.jsonl is not a recorded cassette" in done.stderr
    assert panpan.run("replay", "missing.jsonl").code == 2


def test_replay_gives_the_recorded_answers_to_questions(panpan: Panpan, tmp_path: Path) -> None:
    cassette = tmp_path / "talk.jsonl"
    script = [call("Bash", {"command": "touch a"}), say("One."), call("Bash", {"command": "touch b"}), say("Two.")]
    with serving(script) as server:
        panpan.use(server)
        terminal = Terminal(panpan, "--record", str(cassette))
        for prompt, answer, end in (("make a", "y", "One."), ("make b", "rather c", "Two.")):
            terminal.type(prompt)
            terminal.expect("what to do instead: ")
            terminal.type(answer)
            terminal.expect(end)
            terminal.expect(PROMPT)
        terminal.type("exit")
        assert terminal.end() == 0
    (panpan.workspace / "a").unlink()

    strict = panpan.run("replay", str(cassette), "--json")
    live = panpan.run("replay", str(cassette), "--mode", "live-tools", "--in-place", "--json")

    answers = [line["answer"] for line in lines_of(cassette) if line["type"] == "cassette_answer"]
    assert [answer["is_allowed"] for answer in answers] == [True, False]
    assert answers[1]["feedback"].endswith("rather c")
    assert (strict.code, live.code) == (0, 0), strict.stdout + live.stdout
    assert json.loads(strict.stdout)["turns"] == 2
    assert (panpan.workspace / "a").exists()
    assert not (panpan.workspace / "b").exists()
