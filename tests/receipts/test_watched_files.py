"""Files that are opened and changed are seen, and lost events are told."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from panpan.receipts.inotify import OVERFLOW, Inotify
from panpan.receipts.touched_files import FileEvents, FilesSeen
from panpan.receipts.watched_files import WatchedFiles
from tests.receipts.recorded import OverflowingInotify, missing_inotify


class Watcher:
    """Watches a folder while a block runs."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.watched = WatchedFiles([str(top)], [str(top / "hidden")])

    def seen(self) -> FilesSeen:
        return self.watched.begin()

    def files(self, seen: FilesSeen) -> dict[str, FileEvents]:
        self.watched.end(seen)
        return {os.path.relpath(path, self.top): events for path, events in seen.files.items()}


@pytest.fixture
def watcher(tmp_path: Path) -> Iterator[Watcher]:
    watcher = Watcher(tmp_path.resolve())
    yield watcher
    watcher.watched.close()


def test_events_before_the_beginning_do_not_count(watcher: Watcher) -> None:
    (watcher.top / "a").write_text("x")
    watcher.watched.end(watcher.seen())
    (watcher.top / "a").read_text()
    assert watcher.files(watcher.seen()) == {}


def test_two_at_a_time_both_get_the_events(watcher: Watcher) -> None:
    first = watcher.seen()
    (watcher.top / "a").write_text("x")
    second = watcher.seen()
    (watcher.top / "b").write_text("x")
    assert set(watcher.files(first)) == {"a", "b"}
    assert set(watcher.files(second)) == {"b"}


def test_folders_that_come_are_watched_at_once(watcher: Watcher) -> None:
    seen = watcher.seen()
    (watcher.top / "n" / "m").mkdir(parents=True)
    (watcher.top / "n" / "m" / "a").write_text("x")
    files = watcher.files(seen)
    assert files["n/m/a"].is_written
    seen = watcher.seen()
    (watcher.top / "n" / "m" / "a").read_text()
    assert watcher.files(seen)["n/m/a"].is_read


def test_moved_folder_is_seen_under_its_new_name(watcher: Watcher) -> None:
    (watcher.top / "old" / "sub").mkdir(parents=True)
    (watcher.top / "old" / "sub" / "a").write_text("x")
    watcher.watched.end(watcher.seen())
    seen = watcher.seen()
    (watcher.top / "old").rename(watcher.top / "new")
    assert watcher.files(seen)["new/sub/a"].is_written
    seen = watcher.seen()
    (watcher.top / "new" / "sub" / "a").read_text()
    assert set(watcher.files(seen)) == {"new/sub/a"}


def test_folder_that_came_back_is_watched_again(watcher: Watcher) -> None:
    (watcher.top / "sub").mkdir()
    watcher.watched.end(watcher.seen())
    shutil.rmtree(watcher.top / "sub")
    (watcher.top / "sub").mkdir()
    (watcher.top / "sub" / "a").write_text("x")
    seen = watcher.seen()
    (watcher.top / "sub" / "a").read_text()
    assert watcher.files(seen)["sub/a"].is_read


def test_histories_and_generated_files_are_left_out(watcher: Watcher) -> None:
    for name in (".git", "node_modules", "hidden", ".pytest_cache", "x.egg-info"):
        (watcher.top / name).mkdir()
    seen = watcher.seen()
    for name in (
        ".git/index",
        "node_modules/a.js",
        "hidden/a",
        ".pytest_cache/a",
        "x.egg-info/a",
        "b.pyc",
        ".coverage",
    ):
        (watcher.top / name).write_text("x")
    assert watcher.files(seen) == {}


def test_bytecode_stands_for_its_source(watcher: Watcher) -> None:
    (watcher.top / "p" / "__pycache__").mkdir(parents=True)
    (watcher.top / "p" / "m.py").write_text("")
    (watcher.top / "p" / "__pycache__" / "m.cpython-311-pytest-9.2.pyc").write_text("")
    seen = watcher.seen()
    (watcher.top / "p" / "__pycache__" / "m.cpython-311-pytest-9.2.pyc").read_text()
    assert watcher.files(seen)["p/m.py"].is_read


def test_use_of_a_cache_is_told(watcher: Watcher) -> None:
    (watcher.top / ".mypy_cache" / "3.11").mkdir(parents=True)
    (watcher.top / ".mypy_cache" / "3.11" / "a.meta.json").write_text("")
    seen = watcher.seen()
    assert watcher.files(seen) == {}
    assert not seen.uses_cache
    seen = watcher.seen()
    (watcher.top / ".mypy_cache" / "3.11" / "a.meta.json").read_text()
    assert watcher.files(seen) == {}
    assert seen.uses_cache


def test_use_of_a_cache_that_has_just_come_is_told(watcher: Watcher) -> None:
    seen = watcher.seen()
    (watcher.top / ".mypy_cache").mkdir()
    (watcher.top / ".mypy_cache" / "3.11").mkdir()
    (watcher.top / ".mypy_cache" / "3.11" / "a.meta.json").write_text("")
    watcher.files(seen)
    seen = watcher.seen()
    (watcher.top / ".mypy_cache" / "3.11" / "a.meta.json").read_text()
    watcher.files(seen)
    assert seen.uses_cache


def test_environment_is_told_and_its_files_are_not(watcher: Watcher) -> None:
    seen = watcher.seen()
    (watcher.top / "env" / "lib").mkdir(parents=True)
    (watcher.top / "env" / "lib" / "early.py").write_text("x")
    (watcher.top / "env" / "pyvenv.cfg").write_text("x")
    (watcher.top / "env" / "lib" / "late.py").write_text("x")
    assert watcher.files(seen) == {}
    assert seen.environments == {str(watcher.top / "env")}
    seen = watcher.seen()
    (watcher.top / "env" / "lib" / "early.py").read_text()
    assert watcher.files(seen) == {}
    assert seen.environments == set()
    seen = watcher.seen()
    (watcher.top / "env" / "pyvenv.cfg").read_text()
    assert watcher.files(seen) == {}
    assert seen.environments == {str(watcher.top / "env")}


def test_workspace_that_is_an_environment_is_watched(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("")
    (tmp_path / "a").write_text("")
    watched = WatchedFiles([str(tmp_path)])
    seen = watched.begin()
    (tmp_path / "a").read_text()
    watched.end(seen)
    watched.close()
    assert set(seen.files) == {str(tmp_path / "a")}


def test_names_that_are_no_text_are_seen(watcher: Watcher) -> None:
    seen = watcher.seen()
    (watcher.top / os.fsdecode(b"\xff\n")).write_text("x")
    assert watcher.files(seen)[os.fsdecode(b"\xff\n")].is_written


def test_links_are_not_followed(watcher: Watcher, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "a").write_text("x")
    (watcher.top / "link").symlink_to(outside)
    (watcher.top / "loop").symlink_to(".")
    seen = watcher.seen()
    (watcher.top / "link" / "a").read_text()
    (watcher.top / "loop" / "b").write_text("x")
    assert set(watcher.files(seen)) == {"b"}


def test_too_many_folders_are_told(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    watched = WatchedFiles([str(tmp_path)], most_watches=3)
    seen = watched.begin()
    watched.end(seen)
    watched.close()
    assert not seen.is_complete


def test_folders_that_become_too_many_are_told(tmp_path: Path) -> None:
    watched = WatchedFiles([str(tmp_path)], most_watches=3)
    seen = watched.begin()
    for number in range(5):
        (tmp_path / str(number)).mkdir()
    watched.end(seen)
    watched.close()
    assert not seen.is_complete


def test_lost_events_are_told_and_watching_goes_on(tmp_path: Path) -> None:
    inotify = OverflowingInotify()
    watched = WatchedFiles([str(tmp_path)], open_inotify=lambda: inotify)
    seen = watched.begin()
    inotify.loses = "new"
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a").write_text("x")
    watched.end(seen)
    assert not seen.is_complete
    seen = watched.begin()
    (tmp_path / "new" / "a").read_text()
    watched.end(seen)
    watched.close()
    assert seen.is_complete
    assert seen.files[str(tmp_path / "new" / "a")].is_read


def test_kernel_tells_that_its_queue_is_full(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip("filling so long a queue takes seconds")
    inotify = Inotify()
    inotify.add(str(tmp_path))
    names = [str(tmp_path / name) for name in "ab"]
    for name in names:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
    for _ in range(limit // 4 + 1):
        for name in names:
            os.close(os.open(name, os.O_RDONLY))
    masks = [mask for events in iter(inotify.read, []) for _, mask, _ in events]
    inotify.close()
    assert masks[-1] & OVERFLOW


def test_files_are_incomplete_without_inotify(tmp_path: Path) -> None:
    watched = WatchedFiles([str(tmp_path)], open_inotify=missing_inotify)
    seen = watched.begin()
    watched.end(seen)
    watched.close()
    assert not seen.is_complete


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_threads_and_descriptors_are_given_back(tmp_path: Path) -> None:
    before = open_descriptors()
    for _ in range(5):
        watched = WatchedFiles([str(tmp_path)])
        for _ in range(3):
            watched.end(watched.begin())
        watched.close()
    assert open_descriptors() == before


def test_root_that_another_folder_replaces_is_watched_again(tmp_path: Path) -> None:
    top = tmp_path.resolve() / "work"
    top.mkdir()
    watcher = Watcher(top)
    watcher.files(watcher.seen())
    top.rename(tmp_path / "old")
    top.mkdir()
    (top / "a").write_text("x")
    seen = watcher.seen()
    (top / "a").read_text()
    (tmp_path / "old" / "b").write_text("x")
    files = watcher.files(seen)
    assert (set(files), seen.is_complete) == ({"a"}, True)

    seen = watcher.seen()
    shutil.rmtree(top)
    top.mkdir()
    watcher.files(seen)
    assert not seen.is_complete
    watcher.watched.close()
