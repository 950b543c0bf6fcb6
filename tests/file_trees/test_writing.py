"""Files come back all or none, and only where they are what they were taken for."""

import errno
from pathlib import Path

import pytest

from panpan.errors import SnapshotError
from panpan.file_trees.writing import write_changes
from panpan.system.files.atomic_write import DiskOperations
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace


class FullDisk(DiskOperations):
    """A disk that is full from the n-th write on, for a while."""

    def __init__(self, at: int, *, failures: int = 1) -> None:
        self.at = at
        self.failures = failures
        self.writes = 0

    def write(self, fd: int, data: memoryview) -> int:
        self.writes += 1
        if self.at <= self.writes < self.at + self.failures:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(fd, data)


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_write_changes_on_a_full_disk_leaves_every_file(tmp_path: Path, at: int) -> None:
    place = KeptWorkspace(tmp_path)
    for name in "abc":
        place.write(name, "old\n")
    (place.folder / "link").symlink_to("a")

    def change() -> None:
        for name in "abc":
            place.write(name, "new\n")
        (place.folder / "link").unlink()
        place.write("made/deep", "new\n")

    await place.turn(change)
    changed = place.state()
    plan = await place.snapshots.undo.plan_undo()
    (folder,) = plan.folders

    with pytest.raises(SnapshotError, match=r"No space left on device.*; all files are as they were"):
        await write_changes(folder.store.repository, folder.changes, FullDisk(at))
    assert place.state() == changed
    await place.snapshots.undo.restore(plan)
    assert place.read("c") == "old\n"


async def test_write_changes_on_a_permanently_full_disk_loses_nothing(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    for name in "abc":
        place.write(name, "old\n")
    await place.turn(lambda: [place.write(name, "new\n") for name in "abc"])
    plan = await place.snapshots.undo.plan_undo()
    (folder,) = plan.folders

    with pytest.raises(SnapshotError, match="some files are back and others are not"):
        await write_changes(folder.store.repository, folder.changes, FullDisk(2, failures=10))
    assert [place.read(name) for name in "abc"] == ["old\n", "new\n", "new\n"]
    assert {path.name for path in place.folder.iterdir()} == {"a", "b", "c"}
    await place.undo()
    assert [place.read(name) for name in "abc"] == ["old\n", "old\n", "old\n"]


@pytest.mark.parametrize("what", ["changed", "link", "folder"])
async def test_write_changes_does_not_overwrite_a_recent_change(tmp_path: Path, what: str) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "old\n")
    place.write("z", "old\n")
    await place.turn(lambda: (place.write("a", "new\n"), place.write("z", "new\n")))
    plan = await place.snapshots.undo.plan_undo()
    (folder,) = plan.folders
    (place.folder / "z").unlink()
    match what:
        case "changed":
            place.write("z", "user\n")
        case "link":
            (place.folder / "z").symlink_to(tmp_path / "elsewhere")
        case _:
            place.write("z/inner", "user\n")
    before = place.state()

    with pytest.raises(SnapshotError, match="all files are as they were"):
        await write_changes(folder.store.repository, folder.changes)
    assert place.state() == before
    assert not (tmp_path / "elsewhere").exists()


async def test_write_changes_does_not_follow_a_new_link(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("folder/a", "old\n")
    await place.turn(lambda: place.write("folder/a", "new\n"))
    plan = await place.snapshots.undo.plan_undo()
    (folder,) = plan.folders
    (place.folder / "folder").rename(tmp_path / "outside")
    (place.folder / "folder").symlink_to(tmp_path / "outside")

    with pytest.raises(SnapshotError, match="a link is in the way; all files are as they were"):
        await write_changes(folder.store.repository, folder.changes)
    assert (tmp_path / "outside" / "a").read_text() == "new\n"
