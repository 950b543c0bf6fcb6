"""Files that cannot be kept are reported once, never hidden, and stop nothing."""

import os
import shutil
from pathlib import Path

import pytest

from panpan.capabilities.snapshots.settings import SnapshotSettings
from panpan.errors import SnapshotError
from panpan.file_trees.kept_files import MAX_IGNORED_FILES
from panpan.system.files.folder_tree import remove_tree
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds


async def test_large_file_is_left_out_and_reported_once(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_file_mb=1))
    place.write("large.bin", b"x" * 1_000_001)
    place.write("small.txt", "one\n")
    await place.turn(lambda: (place.write("large.bin", b"y" * 1_000_001), place.write("small.txt", "two\n")))
    await place.turn(lambda: place.write("small.txt", "three\n"))
    plan = await place.undo()

    assert place.warnings == ["/undo does not cover large.bin (it is larger than 1 MB)"]
    assert kinds(plan.files) == {"small.txt": "modified"}
    assert (place.folder / "large.bin").read_bytes() == b"y" * 1_000_001


async def test_file_grown_too_large_is_not_replaced(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_file_mb=1))
    place.write("log", "short\n")
    await place.turn(lambda: (place.write("log", b"y" * 1_000_001), place.write("other", "new\n")))
    plan = await place.undo()

    assert kinds(plan.files) == {"other": "deleted"}
    assert (place.folder / "log").read_bytes() == b"y" * 1_000_001


async def test_file_grown_by_the_user_since_stays(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_file_mb=1))
    place.write("log", "one\n")
    await place.turn(lambda: place.write("log", "two\n"))
    place.write("log", b"y" * 1_000_001)
    plan = await place.undo()

    assert list(plan.conflicts) == ["log"]
    assert (place.folder / "log").read_bytes() == b"y" * 1_000_001


@pytest.mark.parametrize("mark", ["pyvenv.cfg", "conda-meta/history"])
async def test_environment_is_left_out_even_if_not_ignored(tmp_path: Path, mark: str) -> None:
    place = KeptWorkspace(tmp_path)

    def install() -> None:
        for name in (mark, "bin/python", "lib/a.py"):
            place.write(f"env/{name}", "x")
        place.write("other", "new\n")

    await place.turn(install)
    plan = await place.undo()

    assert kinds(plan.files) == {"other": "deleted"}
    assert place.warnings == ["/undo does not cover env/ (package changes have their own rollback)"]
    assert (place.folder / "env/lib/a.py").exists()


@pytest.mark.parametrize("names", [["pyvenv.cfg", "bin/x"], ["src/pyvenv.cfg"], ["old/pyvenv.cfg", "old/bin/x"]])
async def test_environment_lookalike_is_kept(tmp_path: Path, names: list[str]) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("old/code.py", "1\n")
    await place.turn(lambda: place.write("first", "1\n"))
    await place.turn(lambda: [place.write(name, "x") for name in names])

    assert kinds((await place.undo()).files) == dict.fromkeys(names, "deleted")
    assert place.warnings == []


async def test_large_ignored_folder_is_left_out(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write(".gitignore", "node_modules/\nsmall/\n")
    place.write("small/kept", "1\n")
    await place.turn(lambda: place.write("first", "1\n"))

    def install() -> None:
        for number in range(MAX_IGNORED_FILES + 1):
            place.write(f"node_modules/{number % 50}/{number}.js", "x")
        place.write("small/kept", "2\n")

    await place.turn(install)
    files = place.snapshots.turn_files
    await place.turn(lambda: shutil.rmtree(place.folder / "node_modules"))
    await place.undo()

    assert kinds(files) == {"small/kept": "modified"}
    assert place.warnings == ["/undo does not cover node_modules/ (it is ignored by git, and large)"]
    assert place.read("small/kept") == "1\n"


async def test_large_folder_ignored_by_an_inner_repository_is_left_out(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    (place.folder / "inner/.git").mkdir(parents=True)
    place.write("inner/.gitignore", "node_modules/\n")
    await place.turn(lambda: place.write("first", "1\n"))
    later = KeptWorkspace(tmp_path, session="session-2")
    await later.turn(
        lambda: [place.write(f"inner/node_modules/{number % 50}/{number}.js", "x") for number in range(2_001)]
    )

    assert later.snapshots.turn_files == ()
    assert later.warnings == ["/undo does not cover inner/node_modules/ (it is ignored by git, and large)"]


async def test_large_folder_that_is_not_ignored_is_kept(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    for number in range(MAX_IGNORED_FILES + 1):
        place.write(f"data/{number % 50}/{number}.txt", "x")
    before = place.state()
    await place.turn(lambda: shutil.rmtree(place.folder / "data"))
    await place.undo()

    assert place.state() == before
    assert place.warnings == []


async def test_folder_with_too_many_files_disables_undo_and_says_so(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path, settings=SnapshotSettings(max_files=3))
    for number in range(4):
        place.write(f"{number}", "x")
    await place.turn(lambda: place.write("5", "x"))
    await place.turn(lambda: place.write("6", "x"))

    assert place.warnings == [f"/undo covers edits alone, not commands: {place.folder} holds more than 3 files"]
    with pytest.raises(SnapshotError, match="nothing to undo"):
        await place.snapshots.undo.plan_undo()


async def test_home_folder_as_a_workspace_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = KeptWorkspace(tmp_path)
    monkeypatch.setenv("HOME", str(place.folder))
    await place.turn(lambda: place.write("a", "x"))

    assert place.warnings == [f"/undo covers edits alone, not commands: {place.folder} is your whole home folder"]


async def test_panpan_home_in_the_workspace_is_not_kept(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.roots = (tmp_path,)
    await place.turn(lambda: place.write("a", "x"), lambda: place.write("a", "y"))

    assert "work/a" in kinds(place.snapshots.turn_files)
    assert [path for path in kinds(place.snapshots.turn_files) if path.startswith("home/")] == []


async def test_missing_git_is_reported_once_and_the_turn_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = KeptWorkspace(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    await place.turn(lambda: place.write("a", "x"), lambda: place.write("a", "y"))
    await place.turn(lambda: place.write("a", "z"))

    assert len(place.warnings) == 1
    assert "git is not installed" in place.warnings[0]
    assert [record for record in place.records if record.get("subtype") == "snapshot"] == []


def full_disk(folder: Path, command: str) -> None:
    """Put a git on the way that fails as on a full disk, in one command."""
    real = shutil.which("git")
    folder.mkdir()
    fake = folder / "git"
    fake.write_text(
        f"#!/bin/sh\nfor word; do case $word in {command}) "
        "echo 'fatal: sha1 file write error: No space left on device' >&2; exit 128;; esac; done\n"
        f'exec {real} "$@"\n'
    )
    fake.chmod(0o755)


@pytest.mark.parametrize("command", ["update-index", "write-tree"])
async def test_full_disk_is_reported_once_and_later_turns_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    full_disk(tmp_path / "bin", command)
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{path}")
    await place.turn(lambda: place.write("a", "1\n"))
    (tmp_path / "bin" / "git").unlink()
    monkeypatch.setenv("PATH", path)
    (tmp_path / "bin" / "git").symlink_to(shutil.which("git", path=path) or "")
    await place.turn(lambda: place.write("a", "2\n"))
    await place.undo()

    assert len(place.warnings) == 1
    assert "No space left on device" in place.warnings[0]
    assert place.read("a") == "1\n"


async def test_turn_across_a_full_disk_is_undone_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a round that cannot be kept is taken from the next snapshot that can."""
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    full_disk(tmp_path / "bin", "no-such-command")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    good = (tmp_path / "bin" / "git").read_text()

    def change() -> None:
        place.write("a", "1\n")
        (tmp_path / "bin" / "git").write_text(good.replace("no-such-command", "write-tree"))

    await place.turn(change)
    (tmp_path / "bin" / "git").write_text(good)
    await place.undo()

    assert place.read("a") == "0\n"


async def test_lost_snapshot_is_reported(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    await place.turn(lambda: place.write("a", "1\n"))
    for folder in place.home.rglob("objects"):
        shutil.rmtree(folder)
        folder.mkdir()
    later = KeptWorkspace(tmp_path)

    with pytest.raises(SnapshotError, match=r"cannot be read|could not|failed"):
        await later.snapshots.undo.plan_undo()
    assert place.read("a") == "1\n"


async def test_too_long_path_is_reported_and_the_rest_undone(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    name = "n" * 250

    def make() -> None:
        here = os.open(place.folder, os.O_RDONLY)
        for _ in range(20):
            os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here))
            os.mkdir(name, dir_fd=here)
            below = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)

    await place.turn(make)
    plan = await place.undo()

    assert len(place.warnings) == 1
    assert place.warnings[0].endswith("(its path is too long)")
    assert plan.conflicts == {}
    assert {change.kind for change in plan.files} == {"deleted"}
    assert os.listdir(place.folder) == [name]  # noqa: PTH208
    assert not (place.folder / name / "file").exists()
    remove_tree(place.folder / name)
