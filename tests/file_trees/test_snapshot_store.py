"""A folder of few files is looked at without git, and kept as git keeps it."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.errors import SnapshotError
from panpan.file_trees import kept_files, store
from panpan.file_trees.kept_files import KeepLimits
from panpan.file_trees.own_repository import OwnRepository
from panpan.file_trees.store import SnapshotStore
from tests.capabilities.snapshots.test_any_change import Change, changes


def store_in(base: Path, session: str = "one", home: str = "home") -> SnapshotStore:
    (base / "work").mkdir(exist_ok=True)
    return SnapshotStore(OwnRepository(base / home / "kept", base / "work"), session, KeepLimits())


def note_git(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that gets the name of each command of git that runs from now on."""
    ran: list[str] = []
    run = OwnRepository.run

    async def noted(self: OwnRepository, *args: str, **options: object) -> bytes:
        ran.append(args[0])
        return await run(self, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(OwnRepository, "run", noted)
    return ran


@settings(max_examples=10)
@given(st.lists(changes, min_size=1, max_size=5), st.sampled_from([(2_000, 500), (3, 500), (2_000, 2)]))
def test_later_look_keeps_what_a_first_look_keeps(steps: Sequence[Sequence[Change]], limits: tuple[int, int]) -> None:
    async def main(base: Path) -> None:
        mine = store_in(base)
        for number, some in enumerate([[], *steps]):
            for change in some:
                change(base / "work")
            kept, fresh = await mine.take(), await store_in(base, home=f"home-{number}").take()
            assert (kept.tree, kept.empty, kept.left_out) == (fresh.tree, fresh.empty, fresh.left_out)
            assert await mine.take() is kept

    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "_FEW_FILES", limits[0])
        patch.setattr(store, "_MANY_FILES", limits[1])
        anyio.run(main, Path(name).resolve())


async def test_later_look_at_few_files_takes_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store_in(tmp_path)
    (tmp_path / "work" / "a").write_text("one\n")
    await kept.take()
    ran = note_git(monkeypatch)
    (tmp_path / "work" / "b").write_text("two\n")
    (tmp_path / "work" / "a").unlink()
    snapshot = await kept.take()

    assert ran == []
    listed = await kept.repository.run("ls-tree", "--name-only", snapshot.tree)
    assert listed == b"b\n"


async def test_change_of_same_size_and_time_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FINE_RECENT_NS", "_RECENT_NS"):  # as if each file had been left alone for long
        monkeypatch.setattr(kept_files, name, 0)
    kept = store_in(tmp_path)
    file = tmp_path / "work" / "a"
    file.write_text("one\n")
    before, status = await kept.take(), file.stat()
    while file.stat().st_ctime_ns == status.st_ctime_ns:
        file.write_text("two\n")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert (await kept.take()).tree != before.tree


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which clock sets the times of files")
@pytest.mark.parametrize(
    ("major", "age_ms", "is_seen"), [(8, 150, True), (8, 50, False), (0, 150, False), (0, 3_000, True)]
)
def test_state_counts_once_changes_show(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, major: int, age_ms: int, is_seen: bool
) -> None:
    """A file on a disk of this machine counts after 100 ms; the clock of another machine gets 2.1 s."""
    (tmp_path / "a").write_text("one\n")
    now_ns = (tmp_path / "a").stat().st_ctime_ns + 1_000_000 * age_ms
    monkeypatch.setattr(kept_files, "_file_time_ns", lambda: now_ns)
    monkeypatch.setattr(os, "major", lambda device: major)

    assert ("a" in kept_files.stat_paths(tmp_path, ["a"], KeepLimits()).states) == is_seen


async def test_changes_in_one_moment_are_all_kept(tmp_path: Path) -> None:
    kept = store_in(tmp_path)
    file = tmp_path / "work" / "a"
    seen = []
    for number in range(9):
        file.write_text(f"{number}\n")
        seen.append((await kept.take()).tree)

    assert len(set(seen)) == len(seen)


async def test_index_that_is_behind_misses_no_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store_in(tmp_path)
    work = tmp_path / "work"
    (work / "a").write_text("one\n")
    (work / "gone").write_text("one\n")
    await kept.take()
    (work / "a").write_text("two\n")
    (work / "gone").unlink()
    (work / "new").write_text("new\n")
    (work / "later" / "gone").mkdir(parents=True)
    (work / "later" / "gone" / "file").write_text("new\n")
    await kept.take()
    (work / "later" / "gone" / "file").unlink()
    monkeypatch.setattr(store, "_FEW_FILES", 1)
    ran = note_git(monkeypatch)
    (work / "more").write_text("more\n")
    snapshot = await kept.take()

    other = await store_in(tmp_path, home="other").take()
    assert "update-index" in ran
    assert (snapshot.tree, snapshot.empty) == (other.tree, {"later/", "later/gone/"})
    assert snapshot.tree == (await store_in(tmp_path, session="two").take()).tree


async def test_folder_behind_a_new_link_is_not_kept(tmp_path: Path) -> None:
    kept = store_in(tmp_path)
    (tmp_path / "work" / "there" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "a" / "inner").mkdir(parents=True)
    (tmp_path / "work" / "a" / "inner" / "file").write_text("one\n")
    await kept.take()
    shutil.rmtree(tmp_path / "work" / "a")
    (tmp_path / "work" / "a").symlink_to("there")

    assert (await kept.take()).empty == {"there/", "there/inner/"}


async def test_look_that_failed_is_followed_by_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store_in(tmp_path)
    file = tmp_path / "work" / "a"
    file.write_text("one\n")
    await kept.take()
    file.write_text("two\n")
    with monkeypatch.context() as patch, pytest.raises(SnapshotError, match="No space left"):
        patch.setattr(OwnRepository, "add_object", _full_disk)
        await kept.take()

    assert (await kept.take()).tree == (await store_in(tmp_path, home="other").take()).tree


def _full_disk(*_: object) -> str:
    raise OSError(28, "No space left on device")
