"""Undo of a turn through the installed command: real files, a real shell, real git."""

import fcntl
import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import HttpError, call, say, serving

COMMAND = "echo new > made.txt && rm old.txt && echo second >> kept.txt && chmod 755 kept.txt"


def turn(panpan: Panpan, command: str, *args: str) -> dict[str, object]:
    with serving([call("Bash", {"command": command}), say("Done.")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "do it", "--yes", "-f", "json", *args)
    assert done.code == 0, done.stderr
    return done.result


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes()) for path in paths}


def test_undo_and_redo_restore_changes_of_a_shell_command(panpan: Panpan) -> None:
    (panpan.workspace / "old.txt").write_bytes(b"old\r\n")
    (panpan.workspace / "kept.txt").write_text("first\n")
    (panpan.workspace / "kept.txt").chmod(0o640)
    before = content(panpan.workspace)

    result = turn(panpan, COMMAND)
    changed = content(panpan.workspace)
    undone = panpan.run("undo", "--yes")
    after_undo = content(panpan.workspace)
    redone = panpan.run("undo", "--redo", "--yes")

    assert result["files_changed"] == [
        {"path": "kept.txt", "kind": "modified", "added": 1, "deleted": 0},
        {"path": "made.txt", "kind": "added", "added": 1, "deleted": 0},
        {"path": "old.txt", "kind": "deleted", "added": 0, "deleted": 1},
    ]
    assert (undone.code, undone.stderr) == (0, "")
    assert "-second" in undone.stdout
    assert after_undo == before
    assert redone.code == 0
    assert content(panpan.workspace) == changed != before


def test_undo_leaves_out_a_recording_in_the_workspace(panpan: Panpan) -> None:
    (panpan.workspace / "notes").mkdir()
    result = turn(panpan, "echo new > made.txt", "--record", "notes/tape.jsonl")
    undone = panpan.run("undo", "--yes")

    assert result["files_changed"] == [{"path": "made.txt", "kind": "added", "added": 1, "deleted": 0}]
    assert undone.code == 0, undone.stderr
    assert content(panpan.workspace).keys() == {"notes/tape.jsonl"}


def test_undo_without_yes_changes_nothing(panpan: Panpan) -> None:
    turn(panpan, "echo new > made.txt")

    done = panpan.run("undo")

    assert done.code == 5
    session, *change = done.stdout.splitlines()
    assert session.startswith("Session “do it”, last used 20")
    assert session.endswith(f", a run with -p or a pipe: {panpan.session_files()[0].stem}")
    assert "made.txt" in "\n".join(change)
    assert (panpan.workspace / "made.txt").read_text() == "new\n"


def test_undo_does_not_overwrite_the_users_later_changes(panpan: Panpan) -> None:
    (panpan.workspace / "notes.txt").write_text("one\n")
    turn(panpan, "echo two > notes.txt; echo new > made.txt")
    (panpan.workspace / "notes.txt").write_text("three\n")

    refused = panpan.run("undo", "--yes")
    skipped = panpan.run("undo", "--yes", "--skip-changed")

    assert refused.code == 1
    assert "notes.txt: the same lines were changed since" in refused.stdout
    assert skipped.code == 0
    assert (panpan.workspace / "notes.txt").read_text() == "three\n"
    assert not (panpan.workspace / "made.txt").exists()


def test_undo_does_not_touch_the_users_repository(panpan: Panpan) -> None:
    def git(*args: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=u", "-c", "user.email=u@example.org", *args], cwd=panpan.workspace, check=True
        )

    (panpan.workspace / "a.txt").write_text("a\n")
    git("init", "-q")
    git("add", "a.txt")
    git("commit", "-q", "-m", "a")
    (panpan.workspace / "staged.txt").write_text("s\n")
    git("add", "staged.txt")
    repository = {str(path): path.read_bytes() for path in (panpan.workspace / ".git").rglob("*") if path.is_file()}

    turn(panpan, "echo changed > a.txt")
    panpan.run("undo", "--yes")

    now = {str(path): path.read_bytes() for path in (panpan.workspace / ".git").rglob("*") if path.is_file()}
    assert now == repository
    assert (panpan.workspace / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("at", [1, 40, 119])
def test_killed_undo_leaves_whole_files_and_can_be_repeated(panpan: Panpan, at: int) -> None:
    names = [f"{number}.txt" for number in range(120)]
    for name in names:
        (panpan.workspace / name).write_text("old\n" * 1000)
    turn(panpan, "for n in *.txt; do echo new > $n; done; ls")

    def restored() -> int:
        return sum((panpan.workspace / name).stat().st_size > 10 for name in names)

    process = panpan.start("undo", "--yes")
    while process.poll() is None and restored() < at:
        pass
    process.kill()
    process.wait()
    contents = {(panpan.workspace / name).read_text() for name in names}
    again = panpan.run("undo", "--yes")

    assert contents <= {"old\n" * 1000, "new\n"}
    assert again.code == 0, again.stderr
    assert restored() == 120


def test_undo_refuses_an_open_session(panpan: Panpan) -> None:
    turn(panpan, "echo new > made.txt")
    (log,) = panpan.session_files()
    with log.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = panpan.run("undo", "--yes")

    assert done.code == 2
    assert "open in another panpan" in done.stderr
    assert (panpan.workspace / "made.txt").exists()


def test_undo_is_reported_to_the_model_in_the_next_turn(panpan: Panpan) -> None:
    turn(panpan, "echo new > made.txt")
    panpan.run("undo", "--yes")
    with serving([say("I see.")]) as server:
        panpan.use(server)
        panpan.run("-p", "and now?", "-c")

    assert "brought files back" in json.dumps(server.requests[-1].messages)


def test_undo_fails_without_snapshots(panpan: Panpan) -> None:
    settings = panpan.home / "settings.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("[snapshots]\nenabled = false\n")
    result = turn(panpan, "echo new > made.txt")
    done = panpan.run("undo", "--yes")

    assert result["files_changed"] == []
    assert done.code != 0
    assert list(panpan.home.rglob("snapshots")) == []


def test_undo_restores_changes_of_a_failed_turn(panpan: Panpan) -> None:
    with serving([call("Bash", {"command": "echo new > made.txt"}), HttpError(400, "no")]) as server:
        panpan.use(server)
        done = panpan.run("-p", "do it", "--yes", "-f", "json")
    undone = panpan.run("undo", "--yes")

    assert done.code == 1
    assert [file["path"] for file in done.result["files_changed"]] == ["made.txt"]
    assert undone.code == 0
    assert not (panpan.workspace / "made.txt").exists()


def test_undo_restores_changes_of_a_killed_turn(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("old\n")
    with serving([call("Bash", {"command": "echo new > a.txt; echo x > made.txt; sleep 20"})]) as server:
        panpan.use(server)
        process = panpan.start("-p", "do it", "--yes", stdin=subprocess.DEVNULL)
        while not (panpan.workspace / "made.txt").exists():
            assert process.poll() is None
        process.kill()
        process.wait()
    done = panpan.run("undo", "--yes")

    assert done.code == 0, done.stderr
    assert content(panpan.workspace).keys() == {"a.txt"}
    assert (panpan.workspace / "a.txt").read_text() == "old\n"
