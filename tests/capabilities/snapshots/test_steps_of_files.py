"""Calls that say which files they change: a snapshot of those alone, without git and however large the folder is."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.errors import SnapshotError
from panpan.file_trees.kept_files import MAX_IGNORED_FILES
from tests.capabilities.guards.hook_fixtures import call_in
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds


async def edit_turn(place: KeptWorkspace, *files: tuple[str, str]) -> None:
    """Run a turn with one round, which writes files one after the other."""
    await place.begin_turn()
    for path, text in files:
        await place.edit(partial(place.write, path, text), path)
    await place.end_round()
    await place.end_turn()


async def test_edit_is_kept_before_it_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = tmp_path / "ran"
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >> {ran}\nexec {shutil.which("git")} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")
    place = KeptWorkspace(tmp_path)
    place.write("a", "1\n")
    await place.begin_turn()

    await place.edit(lambda: ran.write_text("the call runs\n"), "a")

    assert ran.read_text() == "the call runs\n"


async def test_edits_of_a_round_are_undone_together(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "1\n")
    place.write("other", "1\n")

    await edit_turn(place, ("a", "2\n"), ("new/deep/b", "x\n"), ("new/wide/c", "x\n"), ("a", "3\n"))
    files = place.snapshots.turn_files
    place.write("other", "the user's\n")
    plan = await place.undo()

    assert kinds(files) == {"a": "modified", "new/deep/b": "added", "new/wide/c": "added"}
    assert kinds(plan.files) == {"a": "modified", "new/deep/b": "deleted", "new/wide/c": "deleted"}
    assert (place.read("a"), place.read("other"), place.folders()) == ("1\n", "the user's\n", {})
    await place.redo()
    assert (place.read("a"), place.read("new/deep/b")) == ("3\n", "x\n")


async def test_edits_in_a_left_out_folder_are_undone_beside_a_command(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write(".gitignore", "libs/\n")
    for number in range(MAX_IGNORED_FILES + 1):
        place.write(f"libs/{number}", "x")
    place.write("libs/gone", "1\n")
    before, folders = place.state(), place.folders()

    await place.begin_turn()
    await place.edit(partial(place.write, "libs/0", "2\n", 0o600), "libs/0")
    await place.edit(partial(place.write, "libs/new/one", "new\n"), "libs/new/one")
    await place.edit((place.folder / "libs/gone").unlink, "libs/gone")
    await place.end_round()
    await place.round(lambda: (place.write("made", "1\n"), place.write("libs/1", "by a command\n")))
    await place.end_turn()
    after = place.state()
    plan = await place.undo()

    assert dict(plan.conflicts) == {}
    assert place.state() == {**before, "libs/1": after["libs/1"]}
    assert place.folders() == folders
    await place.redo()
    assert place.state() == after
    await place.undo()
    assert place.state() == {**before, "libs/1": after["libs/1"]}


async def test_undo_in_a_left_out_folder_keeps_changes_of_the_user(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write(".gitignore", "libs/\n")
    for number in range(MAX_IGNORED_FILES + 1):
        place.write(f"libs/{number}", "x")
    await place.begin_turn()
    await place.edit(partial(place.write, "libs/0", "2\n"), "libs/0")
    await place.edit((place.folder / "libs/1").unlink, "libs/1")
    await place.end_round()
    await place.round(partial(place.write, "made", "1\n"))
    await place.end_turn()
    place.write("libs/0", "the user's\n")
    place.write("libs/1/file", "the user's\n")

    plan = await place.undo()

    assert plan.conflicts == {
        "libs/0": "the same lines were changed since",
        "libs/1": "something else has its place by now",
    }
    assert (place.read("libs/0"), place.read("libs/1/file")) == ("the user's\n", "the user's\n")
    assert not (place.folder / "made").exists()


async def test_turn_without_effect_is_not_undone(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await edit_turn(place, ("a", "1\n"))
    await place.begin_turn()
    for path in ("b", "new/c"):
        await place.edit(lambda: None, path)
    await place.end_round()
    await place.end_turn()

    assert kinds((await place.undo()).files) == {"a": "deleted"}


async def test_turn_counts_the_lines_of_all_its_steps(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "1\n2\n3\n")
    await place.begin_turn()
    await place.edit(partial(place.write, "a", "1\n2\nx\n"), "a")
    await place.end_round()
    await place.round(lambda: place.write("b", "of a command\n"))
    await place.edit(partial(place.write, "a", "1\n2\n3\n4\n"), "a")
    await place.end_round()
    await place.end_turn()

    changes = [(file.path, file.kind, file.added, file.deleted) for file in place.snapshots.turn_files]
    assert changes == [("a", "modified", 1, 0), ("b", "added", 1, 0)]


async def test_edits_at_the_same_time_are_both_undone(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "1\n")
    place.write("b", "1\n")
    await place.begin_turn()

    async def second() -> None:
        await place.edit(partial(place.write, "b", "2\n"), "b", id_="2")

    first = place.call("a")
    await place.snapshots.rounds.before_effect(first)
    place.write("a", "2\n")
    await second()
    await place.end_round()
    await place.end_turn()
    await place.undo()

    assert (place.read("a"), place.read("b")) == ("1\n", "1\n")


async def test_change_of_the_user_before_a_command_is_theirs(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("theirs", "1\n")
    await place.turn(lambda: place.write("c", "1\n"))
    place.write("theirs", "2\n")

    await place.begin_turn()
    await place.edit(partial(place.write, "a", "x\n"), "a")
    await place.round(lambda: place.write("b", "x\n"))
    await place.end_turn()
    plan = await place.undo()

    assert kinds(plan.files) == {"a": "deleted", "b": "deleted"}
    assert place.read("theirs") == "2\n"


async def test_edit_is_undone_in_a_folder_that_is_too_large(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_files=5))
    for number in range(10):
        place.write(f"file{number}", "x\n")

    await edit_turn(place, ("file1", "y\n"))
    await place.undo()
    before = list(place.warnings)
    await place.turn(lambda: place.write("file2", "y\n"))

    assert place.read("file1") == "x\n"
    assert before == []
    assert place.warnings == [f"/undo covers edits alone, not commands: {place.folder} holds more than 5 files"]
    with pytest.raises(SnapshotError, match="nothing to undo"):
        await place.undo()


async def test_edit_beside_a_command_in_the_background_is_in_its_step(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    rounds = place.snapshots.rounds
    place.write("c", "1\n")
    await place.begin_turn()
    await rounds.effect_begins_beside("agent 1", call_in(place.folder))
    await place.end_round()

    await place.edit(partial(place.write, "a", "1\n"), "a")
    place.write("c", "2\n")
    rounds.effect_ended_beside("agent 1")
    await place.end_round()
    await place.end_turn()
    await place.undo()

    assert (place.read("c"), place.state().keys()) == ("1\n", {"c"})


async def test_edit_is_kept_beside_a_command_that_cannot_be(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_files=5))
    large = tmp_path / "large"
    large.mkdir()
    for number in range(10):
        (large / f"file{number}").write_text("x\n")
    place.roots = (place.folder, large)
    await place.begin_turn()
    await place.snapshots.rounds.before_effect(call_in(place.folder))
    place.write("a", "1\n")

    await place.edit(lambda: (large / "file1").write_text("y\n"), str(large / "file1"))
    await place.end_round()
    await place.end_turn()
    files = place.snapshots.turn_files
    await place.undo()

    assert kinds(files) == {"a": "added", f"{large}/file1": "modified"}
    assert ((large / "file1").read_text(), place.state()) == ("x\n", {})


async def test_edit_that_a_crash_cut_off_is_undone(tmp_path: Path) -> None:
    killed = KeptWorkspace(tmp_path)
    killed.write("a", "1\n")
    killed.write("other", "1\n")
    await killed.begin_turn()
    await killed.snapshots.rounds.before_effect(killed.call("a"))
    killed.write("a", "half")

    place = KeptWorkspace(tmp_path)
    place.write("other", "2\n")
    await place.undo()

    assert (place.read("a"), place.read("other")) == ("1\n", "2\n")


async def test_undo_leaves_what_has_taken_the_place(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "1\n")
    place.write("folder/b", "1\n")
    await place.begin_turn()
    await place.edit((place.folder / "a").unlink, "a")
    await place.edit((place.folder / "folder" / "b").unlink, "folder/b")
    await place.end_round()
    await place.end_turn()
    place.write("a/of-the-user", "x\n")
    (place.folder / "folder").rmdir()
    place.write("folder", "of the user\n")

    plan = await place.undo()

    assert dict(plan.conflicts) == dict.fromkeys(("a", "folder/b"), "something else has its place by now")
    assert (place.read("a/of-the-user"), place.read("folder")) == ("x\n", "of the user\n")


async def test_edit_of_what_git_keeps_for_itself_is_not_kept(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)

    await edit_turn(place, (".git/config", "x\n"))

    assert place.snapshots.turn_files == ()
    assert [record for record in place.records if record.get("subtype") == "snapshot"] == []
