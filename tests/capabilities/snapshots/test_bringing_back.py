"""Undo restores all changes of a turn and keeps the user's later ones."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from panpan.errors import SnapshotError
from tests.capabilities.guards.hook_fixtures import call_in
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds, state_of


@pytest.fixture
def place(tmp_path: Path) -> KeptWorkspace:
    return KeptWorkspace(tmp_path)


async def test_turn_is_undone_and_redone(place: KeptWorkspace) -> None:
    place.write("changed.txt", "one\n")
    place.write("deleted/deep/file.txt", "gone\n")
    before = place.state()

    def change() -> None:
        place.write("changed.txt", "two\n")
        shutil.rmtree(place.folder / "deleted")
        place.write("made/file.txt", "new\n")

    await place.turn(change)
    after = place.state()
    plan = await place.undo()

    assert kinds(plan.files) == {
        "changed.txt": "modified",
        "deleted/deep/file.txt": "added",
        "made/file.txt": "deleted",
    }
    assert place.state() == before
    assert not (place.folder / "made").exists()
    await place.redo()
    assert place.state() == after
    await place.undo()
    assert place.state() == before


async def test_undo_takes_rounds_together_and_turns_one_by_one(place: KeptWorkspace) -> None:
    place.write("a.txt", "0\n")
    await place.turn(lambda: place.write("a.txt", "1\n"), lambda: place.write("a.txt", "2\n"))
    files = place.snapshots.turn_files
    await place.turn(lambda: place.write("a.txt", "3\n"))

    assert [(file.path, file.added, file.deleted) for file in files] == [("a.txt", 1, 1)]
    await place.undo()
    assert place.read("a.txt") == "2\n"
    await place.undo()
    assert place.read("a.txt") == "0\n"
    with pytest.raises(SnapshotError, match="nothing to undo"):
        await place.snapshots.undo.plan_undo()
    await place.redo()
    await place.redo()
    assert place.read("a.txt") == "3\n"
    with pytest.raises(SnapshotError, match="nothing to redo"):
        await place.snapshots.undo.plan_redo()


async def test_turn_files_omit_changes_of_the_user(place: KeptWorkspace) -> None:
    place.write("back", "0\n")
    await place.begin_turn()
    for path, data in (("model", "1\n"), ("back", "1\n"), ("model", "2\n"), ("back", "0\n")):
        await place.round(lambda path=path, data=data: place.write(path, data))
        place.write("user", data)
    await place.end_turn()

    assert kinds(place.snapshots.turn_files) == {"model": "added"}


async def test_new_change_ends_redo(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("a.txt", "1\n"))
    await place.undo()
    await place.turn(lambda: place.write("b.txt", "1\n"))

    with pytest.raises(SnapshotError, match="nothing to redo"):
        await place.snapshots.undo.plan_redo()


async def test_turn_without_changes_is_no_step(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("a.txt", "1\n"))
    await place.undo()
    await place.turn(lambda: None)

    assert place.snapshots.turn_files == ()
    await place.redo()
    assert place.read("a.txt") == "1\n"


@pytest.mark.parametrize(
    "name",
    [
        "with blank",
        "new\nline",
        "tab\t\"quote'",
        "back\\slash",
        "-rf",
        "*",
        "[a]",
        "#!x",
        "trailing ",
        ".gitignore",
        "é",
    ],
)
async def test_undo_restores_any_name(place: KeptWorkspace, name: str) -> None:
    place.write(name, "old\n")
    place.write(f"folder {name}/file", "old\n")
    before = place.state()

    def change() -> None:
        place.write(name, "new\n")
        shutil.rmtree(place.folder / f"folder {name}")
        place.write(f"{name}.made", "new\n")

    await place.turn(change)
    await place.undo()

    assert place.state() == before
    assert place.warnings == []


async def test_undo_restores_names_that_are_no_text(place: KeptWorkspace) -> None:
    name = os.fsdecode(b"\xff\xfe.bin")
    place.write(name, b"\x00\xff\r\n")
    before = place.state()
    await place.turn(lambda: (place.folder / name).unlink())
    plan = await place.undo()

    assert kinds(plan.files) == {name: "added"}
    assert place.state() == before


async def test_undo_restores_bytes_despite_line_end_settings(place: KeptWorkspace) -> None:
    place.write(
        ".gitattributes", "* text=auto eol=crlf ident working-tree-encoding=UTF-16\n*.bin filter=evil diff=evil\n"
    )
    place.write("unix.txt", b"a\nb\n$Id$\n")
    place.write("windows.txt", b"a\r\nb\r\n$Id: 12 $\r\n")
    place.write("mixed.bin", b"\x00a\r\nb\n\xff")
    before = place.state()

    def change() -> None:
        for path in ("unix.txt", "windows.txt", "mixed.bin"):
            place.write(path, b"other\r\n")

    await place.turn(change)
    await place.undo()

    assert place.state() == before


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755, 0o700, 0o444, 0o640, 0o4755])
async def test_undo_restores_permission_bits(place: KeptWorkspace, mode: int) -> None:
    place.write("removed", "x", mode)
    place.write("changed", "x", mode)
    place.write("only mode", "x", mode)
    before = place.state()

    def change() -> None:
        (place.folder / "removed").unlink()
        (place.folder / "changed").chmod(0o600)
        place.write("changed", "y", 0o777)
        (place.folder / "only mode").chmod(0o777)

    await place.turn(change)
    plan = await place.undo()

    assert place.state() == before
    assert kinds(plan.files) == {"changed": "modified", "only mode": "modified", "removed": "added"}


async def test_undo_restores_links_without_following_them(place: KeptWorkspace, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("theirs\n")
    (place.folder / "to folder").symlink_to(outside)
    (place.folder / "to nothing").symlink_to("no/where")
    place.write("becomes link", "file\n")
    place.write("folder/becomes link", "file\n")
    before = place.state()

    def change() -> None:
        (place.folder / "to folder").unlink()
        place.write("to folder/file", "mine\n")
        (place.folder / "to nothing").unlink()
        (place.folder / "to nothing").symlink_to(outside / "file")
        (place.folder / "becomes link").unlink()
        (place.folder / "becomes link").symlink_to(outside / "file")
        shutil.rmtree(place.folder / "folder")
        (place.folder / "folder").symlink_to(outside)

    await place.turn(change)
    await place.undo()

    assert place.state() == before
    assert state_of(outside) == {"file": ("file", (outside / "file").stat().st_mode & 0o777, b"theirs\n")}


async def test_undo_restores_a_file_that_became_a_folder(place: KeptWorkspace) -> None:
    place.write("a", "file\n")
    place.write("b/c", "file\n")
    before = place.state()

    def change() -> None:
        (place.folder / "a").unlink()
        place.write("a/b/c", "deep\n")
        shutil.rmtree(place.folder / "b")
        place.write("b", "flat\n")

    await place.turn(change)
    await place.undo()

    assert place.state() == before


async def test_undo_restores_ignored_files(place: KeptWorkspace) -> None:
    place.write(".gitignore", "*.log\nbuild/\n.env\n")
    place.write(".env", "SECRET=1\n", 0o600)
    place.write("build/out.o", b"\x7fELF")
    before = place.state()

    def change() -> None:
        (place.folder / ".env").unlink()
        shutil.rmtree(place.folder / "build")

    await place.turn(change)
    await place.undo()

    assert place.state() == before


async def test_undo_restores_many_files(place: KeptWorkspace) -> None:
    for number in range(700):
        place.write(f"folder{number % 7}/{number}.txt", f"{number}\n")
    before = place.state()
    await place.turn(lambda: [shutil.rmtree(place.folder / f"folder{number}") for number in range(7)])
    await place.undo()

    assert place.state() == before


# what the user changed since


async def test_undo_keeps_other_lines_changed_by_the_user(place: KeptWorkspace) -> None:
    lines = [f"line {number}\n" for number in range(20)]
    place.write("a.txt", "".join(lines), 0o644)
    await place.turn(lambda: place.write("a.txt", "".join(["model\n", *lines[1:]])))
    place.write("a.txt", "".join(["model\n", *lines[1:], "user\n"]), 0o600)
    plan = await place.undo()

    assert plan.merged == ["a.txt"]
    assert place.read("a.txt") == "".join([*lines, "user\n"])
    assert (place.folder / "a.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("since", ["changed", "deleted", "other folder"])
async def test_undo_leaves_a_file_changed_by_the_user(place: KeptWorkspace, since: str) -> None:
    place.write("theirs", "old\n")
    await place.turn(lambda: (place.write("theirs", "model\n"), place.write("ours", "model\n")))
    if since == "changed":
        place.write("theirs", "user\n")
    else:
        (place.folder / "theirs").unlink()
    if since == "other folder":
        place.write("theirs/inner", "user\n")
    mine = {path: one for path, one in place.state().items() if path != "ours"}
    plan = await place.undo()

    assert list(plan.conflicts) == ["theirs"]
    assert kinds(plan.files) == {"ours": "deleted"}
    assert place.state() == mine


async def test_undo_leaves_a_deleted_file_remade_by_the_user(place: KeptWorkspace) -> None:
    place.write("a", "old\n")
    await place.turn(lambda: (place.folder / "a").unlink())
    place.write("a", "user\n")
    plan = await place.undo()

    assert plan.conflicts == {"a": "it was made again since"}
    assert place.read("a") == "user\n"


async def test_undo_leaves_later_files_of_the_user(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("folder/model", "model\n"))
    place.write("folder/user", "user\n")
    await place.undo()

    assert list(place.state()) == ["folder/user"]


async def test_undo_leaves_changes_of_the_user_between_rounds(place: KeptWorkspace) -> None:
    place.write("a", "0\n")
    await place.begin_turn()
    await place.turn(lambda: place.write("b", "model\n"))
    place.write("user", "user\n")
    await place.turn(lambda: place.write("c", "model\n"))
    await place.undo()
    await place.undo()

    assert set(place.state()) == {"a", "user"}


async def test_undo_does_not_merge_a_binary_file(place: KeptWorkspace) -> None:
    place.write("a", b"\x00" * 100 + b"\n1")
    await place.turn(lambda: place.write("a", b"\x00" * 100 + b"\n2"))
    place.write("a", b"user" + b"\x00" * 100 + b"\n2")
    plan = await place.undo()

    assert list(plan.conflicts) == ["a"]
    assert (place.folder / "a").read_bytes().startswith(b"user")


async def test_undo_refuses_files_changed_after_the_plan(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("a", "model\n"))
    plan = await place.snapshots.undo.plan_undo()
    place.write("a", "user\n")

    with pytest.raises(SnapshotError, match="have changed meanwhile"):
        await place.snapshots.undo.restore(plan)
    assert place.read("a") == "user\n"


# messages


async def test_undo_goes_back_to_any_message(place: KeptWorkspace) -> None:
    place.write("a", "0\n")
    first = await place.turn(lambda: place.write("a", "1\n"))
    second = await place.turn(lambda: place.write("b", "2\n"))
    await place.turn(lambda: place.write("a", "3\n"))
    place.write("user", "user\n")

    await place.rewind(second)
    assert {path: one[2] for path, one in place.state().items()} == {"a": b"1\n", "user": b"user\n"}
    await place.rewind(first)
    assert {path: one[2] for path, one in place.state().items()} == {"a": b"0\n", "user": b"user\n"}
    await place.undo()
    assert place.read("a") == "1\n"
    await place.undo()
    assert (place.read("a"), place.read("b")) == ("3\n", "2\n")


async def test_undo_refuses_an_unknown_message(place: KeptWorkspace) -> None:
    with pytest.raises(SnapshotError, match="no snapshot of the files before this message"):
        await place.snapshots.undo.plan_rewind("nowhere")


async def test_undo_is_told_to_the_model_once(place: KeptWorkspace) -> None:
    await place.turn(lambda: place.write("a", "1\n"))
    await place.undo()
    await place.begin_turn()
    first = list(place.reminders)
    await place.begin_turn()

    assert [reminder.cause for reminder in first] == ["undo"]  # type: ignore[union-attr]
    assert list(place.reminders) == []


async def test_undo_works_in_a_later_session_of_the_log(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    await place.turn(lambda: place.write("a", "1\n"))
    other = KeptWorkspace(tmp_path)
    await other.undo()
    third = KeptWorkspace(tmp_path)
    await third.begin_turn()

    assert place.read("a") == "0\n"
    assert len(third.reminders) == 1


async def test_undo_covers_a_turn_cut_off_by_a_crash(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    await place.begin_turn()
    await place.snapshots.rounds.before_effect(call_in(place.folder))
    place.write("a", "1\n")
    place.write("b", "1\n")
    after_the_crash = KeptWorkspace(tmp_path)
    plan = await after_the_crash.undo()

    assert kinds(plan.files) == {"a": "modified", "b": "deleted"}
    assert place.read("a") == "0\n"


@pytest.mark.parametrize("becomes", ["nothing", "link"])
async def test_undo_reports_a_moved_workspace_and_uses_no_other(
    place: KeptWorkspace, tmp_path: Path, becomes: str
) -> None:
    place.write("a", "1\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("theirs\n")

    def change() -> None:
        place.folder.rename(tmp_path / "moved")
        if becomes == "link":
            place.folder.symlink_to(outside)

    await place.turn(change)

    assert any("is no longer a folder" in warning for warning in place.warnings)
    with pytest.raises(SnapshotError, match="a snapshot of the files cannot be taken now"):
        await place.undo()
    assert (outside / "a").read_text() == "theirs\n"
    if becomes == "link":
        place.folder.unlink()
    place.folder.mkdir()
    await place.undo()
    assert place.read("a") == "1\n"


# repositories


def git(folder: Path, *args: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=u", "-c", "user.email=u@example.org", "-c", "init.defaultBranch=main", *args],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def make_repository(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "committed").write_text("c\n")
    git(folder, "init", "-q")
    git(folder, "add", "committed")
    git(folder, "commit", "-q", "-m", "c")
    (folder / "staged").write_text("s\n")
    git(folder, "add", "staged")
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch ran-a-hook\n")
    hook.chmod(0o755)


@pytest.mark.parametrize("where", ["", "nested", "nested/deeper"])
async def test_undo_restores_files_of_repositories_but_not_git_folders(place: KeptWorkspace, where: str) -> None:
    make_repository(place.folder)
    if where:
        make_repository(place.folder / where)
    before = place.state()

    def change() -> None:
        place.write(f"{where}/committed".lstrip("/"), "changed\n")
        (place.folder / where / "staged").unlink()
        place.write(f"{where}/made".lstrip("/"), "new\n")

    await place.turn(change)
    await place.undo()

    assert place.state() == before
    assert place.warnings == []


async def test_undo_removes_cloned_files_but_not_the_repository(
    place: KeptWorkspace,
) -> None:
    await place.turn(lambda: make_repository(place.folder / "cloned"))
    plan = await place.undo()

    assert kinds(plan.files) == {"cloned/committed": "deleted", "cloned/staged": "deleted"}
    assert (place.folder / "cloned" / ".git" / "HEAD").exists()


async def test_undo_leaves_a_repository_without_files(place: KeptWorkspace) -> None:
    git(place.folder, "init", "-q", "--bare", "store.git")
    before = place.state()
    await place.turn(lambda: (place.folder / "store.git" / "description").write_text("changed\n"))

    assert place.snapshots.turn_files == ()
    assert set(place.state()) == set(before)
    assert any("store.git/" in warning for warning in place.warnings)


async def test_undo_works_for_a_difference_too_long_to_show(place: KeptWorkspace) -> None:
    place.write("long.txt", "a line that is long enough\n" * 100_000)
    before = place.state()
    await place.turn(lambda: (place.folder / "long.txt").unlink())
    plan = await place.undo()

    assert plan.diff == "… the difference is too long to be shown\n"
    assert place.state() == before


async def test_undo_that_is_impossible_leaves_repositories_alone(place: KeptWorkspace) -> None:
    place.write("d", "file\n")

    def change() -> None:
        (place.folder / "d").unlink()
        place.write("d/a", "x\n")
        (place.folder / "d/sub/deep").mkdir(parents=True)

    await place.turn(change)
    for folder in (
        "objects/info",
        "objects/pack",
        "refs/heads",
        "refs/tags",
    ):  # those of a repository that hold no file
        (place.folder / "d/r/.git" / folder).mkdir(parents=True)
    before = sorted(place.folder.rglob("*"))

    with pytest.raises(SnapshotError, match="git repository"):
        await place.undo()

    assert sorted(place.folder.rglob("*")) == before
