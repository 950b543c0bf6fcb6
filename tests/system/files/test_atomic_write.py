import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from panpan.errors import ToolError
from panpan.system.files.atomic_write import DiskOperations, FileChangedError, write_atomic

OLD = b"old content\n"
NEW = b"new content, which is longer than one write\n" * 4


class FailingDisk(DiskOperations):
    """Fails at the `fail_at`-th step, and before that lets each write take a few bytes only."""

    def __init__(self, fail_at: int, error: int) -> None:
        self.steps: list[str] = []
        self._fail_at = fail_at
        self._error = error

    def write(self, fd: int, data: memoryview) -> int:
        self._step("write")
        return super().write(fd, data[:70])

    def fsync(self, fd: int) -> None:
        self._step("fsync folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "fsync")
        super().fsync(fd)

    def replace(self, source: str, target: str, folder: int) -> None:
        self._step("replace")
        super().replace(source, target, folder)

    def link(self, source: str, target: str, folder: int) -> None:
        self._step("link")
        super().link(source, target, folder)

    def _step(self, name: str) -> None:
        self.steps.append(name)
        if len(self.steps) - 1 == self._fail_at:
            raise OSError(self._error, os.strerror(self._error))


class LinklessDisk(DiskOperations):
    """A file system without hard links, as on a memory stick."""

    def __init__(self, folder_error: int | None = None) -> None:
        self._folder_error = folder_error

    def link(self, source: str, target: str, folder: int) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    def fsync(self, fd: int) -> None:
        if self._folder_error is not None and stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(self._folder_error, os.strerror(self._folder_error))
        super().fsync(fd)


def names_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def steps_of(path: str = "file", *, exists: bool = True, must_not_exist: bool = False) -> list[str]:
    """Return the steps of a write that succeeds."""
    with tempfile.TemporaryDirectory() as name:
        disk = FailingDisk(-1, 0)
        target = Path(name) / path
        if exists:
            target.write_bytes(OLD)
        write_atomic(target, NEW, must_not_exist=must_not_exist, operations=disk)
        return disk.steps


def test_write_atomic_gives_a_new_file_the_umasks_mode(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "file", NEW)
    finally:
        os.umask(before)

    assert (tmp_path / "file").read_bytes() == NEW
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert names_in(tmp_path) == {"file"}


def test_write_atomic_writes_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    write_atomic(tmp_path / "file", b"")

    assert (tmp_path / "file").read_bytes() == b""


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o640, 0o4755])
def test_write_atomic_keeps_the_mode_of_an_existing_file(mode: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "file").chmod(mode)

    write_atomic(tmp_path / "file", NEW)

    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_write_atomic_prefers_a_given_mode(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(OLD)

    write_atomic(tmp_path / "old", NEW, mode=0o600)
    write_atomic(tmp_path / "new", NEW, mode=0o777)

    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_write_atomic_keeps_owner_and_group_for_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    os.chown(tmp_path / "file", 1234, 2345)
    (tmp_path / "file").chmod(0o2755)

    write_atomic(tmp_path / "file", NEW)

    status = (tmp_path / "file").stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o2755)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_write_atomic_refuses_a_read_only_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "file").chmod(0o444)

    with pytest.raises(ToolError, match="is read-only"):
        write_atomic(tmp_path / "file", NEW)

    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_write_atomic_reports_an_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed" / "file").write_bytes(OLD)
    (tmp_path / "closed").chmod(0o555)

    with pytest.raises(ToolError, match=r"could not write .*Permission denied; nothing was changed"):
        write_atomic(tmp_path / "closed" / "file", NEW)

    assert (tmp_path / "closed" / "file").read_bytes() == OLD


def test_write_atomic_keeps_user_attributes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    try:
        os.setxattr(tmp_path / "file", "user.origin", b"somewhere")
    except OSError:
        pytest.skip("this file system has no extended attributes")

    write_atomic(tmp_path / "file", NEW)

    assert os.getxattr(tmp_path / "file", "user.origin") == b"somewhere"


def test_write_atomic_writes_through_a_link_on_request(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real").write_bytes(OLD)
    (tmp_path / "link").symlink_to("elsewhere/real")
    (tmp_path / "link-to-link").symlink_to("link")

    write_atomic(tmp_path / "link-to-link", NEW, follow_symlinks=True)

    assert (tmp_path / "elsewhere" / "real").read_bytes() == NEW
    assert (tmp_path / "link").readlink() == Path("elsewhere/real")
    assert (tmp_path / "link-to-link").readlink() == Path("link")


def test_write_atomic_creates_a_links_target_on_request(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("missing")

    write_atomic(tmp_path / "link", NEW, follow_symlinks=True)

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "missing").read_bytes() == NEW


def test_write_atomic_refuses_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")

    with pytest.raises(ToolError, match="loop of links"):
        write_atomic(tmp_path / "loop", NEW, follow_symlinks=True)


@pytest.mark.parametrize("way", ["link/file", "link/new/file", "deep/link/file", "file-link", "dangling"])
def test_write_atomic_follows_no_link_unless_requested(way: str, tmp_path: Path) -> None:
    outside, work = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    (outside / "file").write_bytes(OLD)
    (work / "deep").mkdir(parents=True)
    for link, target in {"link": "", "deep/link": "", "file-link": "file", "dangling": "none"}.items():
        (work / link).symlink_to(outside / target)
    before = names_in(work)

    with pytest.raises(ToolError, match="a link"):
        write_atomic(work / way, NEW)

    assert names_in(outside) == {"file"}
    assert (outside / "file").read_bytes() == OLD
    assert names_in(work) == before


class SwappingDisk(DiskOperations):
    """Swaps a folder for a link out of it right before one step of a write."""

    def __init__(self, folder: Path, outside: Path, step: str) -> None:
        self._folder = folder
        self._outside = outside
        self._step = step

    def write(self, fd: int, data: memoryview) -> int:
        self._swap("write")
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        self._swap("fsync")
        super().fsync(fd)

    def replace(self, source: str, target: str, folder: int) -> None:
        self._swap("replace")
        super().replace(source, target, folder)

    def link(self, source: str, target: str, folder: int) -> None:
        self._swap("link")
        super().link(source, target, folder)

    def _swap(self, step: str) -> None:
        if step == self._step and not self._folder.is_symlink():
            self._folder.rename(self._folder.with_name("moved"))
            self._folder.symlink_to(self._outside)


@pytest.mark.parametrize("path", ["file", "new", "made/new"])
@pytest.mark.parametrize("step", ["write", "fsync", "replace", "link"])
def test_write_atomic_survives_a_folder_swapped_at_any_step(step: str, path: str, tmp_path: Path) -> None:
    (tmp_path / "outside" / "made").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_bytes(OLD)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(OLD)
    before = names_in(tmp_path / "outside")

    with suppress(ToolError):
        disk = SwappingDisk(tmp_path / "sub", tmp_path / "outside", step)
        write_atomic(tmp_path / "sub" / path, NEW, must_not_exist=path != "file", operations=disk)

    assert names_in(tmp_path / "outside") == before
    assert (tmp_path / "outside" / "file").read_bytes() == OLD
    written = tmp_path / ("moved" if (tmp_path / "sub").is_symlink() else "sub") / path
    assert not written.exists() or written.read_bytes() == NEW
    assert not [name for name in names_in(tmp_path) if name.endswith(".tmp")]


def test_write_atomic_hard_links_no_file_put_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(OLD)
    (tmp_path / "work").mkdir()

    class Exchanging(DiskOperations):
        def link(self, source: str, target: str, folder: int) -> None:
            (tmp_path / "work" / source).unlink()
            (tmp_path / "work" / source).symlink_to(tmp_path / "secret")
            super().link(source, target, folder)

    write_atomic(tmp_path / "work" / "file", NEW, must_not_exist=True, operations=Exchanging())

    assert (tmp_path / "secret").stat().st_nlink == 1
    assert not names_in(tmp_path / "work") - {"file"}


def test_write_atomic_leaves_hard_links_with_the_old_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "other-name").hardlink_to(tmp_path / "file")

    write_atomic(tmp_path / "file", NEW)

    assert (tmp_path / "file").read_bytes() == NEW
    assert (tmp_path / "other-name").read_bytes() == OLD


def test_write_atomic_makes_missing_folders(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a" / "b" / "file", NEW)

    assert (tmp_path / "a" / "b" / "file").read_bytes() == NEW


def test_write_atomic_writes_the_longest_name(tmp_path: Path) -> None:
    write_atomic(tmp_path / ("x" * 255), NEW)

    assert names_in(tmp_path) == {"x" * 255}


def test_write_atomic_refuses_folders_and_special_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    before = names_in(tmp_path)

    with pytest.raises(ToolError, match="is a folder"):
        write_atomic(tmp_path / "folder", NEW)
    with pytest.raises(ToolError, match="is a FIFO"):
        write_atomic(tmp_path / "fifo", NEW)
    with pytest.raises(ToolError, match="is a device"):
        write_atomic(Path("/dev/null"), NEW)

    assert names_in(tmp_path) == before
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_write_atomic_refuses_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    with pytest.raises(ToolError, match="could not write"):
        write_atomic(tmp_path / "file" / "below" / "x", NEW)

    assert (tmp_path / "file").read_bytes() == OLD


def test_write_atomic_replaces_the_expected_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    write_atomic(tmp_path / "file", NEW, expected_digest=digest(OLD))

    assert (tmp_path / "file").read_bytes() == NEW


def test_write_atomic_leaves_a_changed_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"of another writer")

    with pytest.raises(FileChangedError, match="has changed since it was read"):
        write_atomic(tmp_path / "file", NEW, expected_digest=digest(OLD))

    assert (tmp_path / "file").read_bytes() == b"of another writer"
    assert names_in(tmp_path) == {"file"}


def test_write_atomic_notices_a_change_during_the_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    class SlowDisk(DiskOperations):
        def fsync(self, fd: int) -> None:
            (tmp_path / "file").write_bytes(b"of another writer")

    with pytest.raises(FileChangedError):
        write_atomic(tmp_path / "file", NEW, expected_digest=digest(OLD), operations=SlowDisk())

    assert (tmp_path / "file").read_bytes() == b"of another writer"


def test_write_atomic_does_not_recreate_a_deleted_file(tmp_path: Path) -> None:
    with pytest.raises(FileChangedError, match="has been removed"):
        write_atomic(tmp_path / "sub" / "file", NEW, expected_digest=digest(OLD))

    assert names_in(tmp_path) == set()


def test_write_atomic_leaves_a_file_that_must_not_exist(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    with pytest.raises(FileChangedError, match="exists already"):
        write_atomic(tmp_path / "file", NEW, must_not_exist=True)

    assert (tmp_path / "file").read_bytes() == OLD


@pytest.mark.parametrize("base", [DiskOperations, LinklessDisk])
def test_write_atomic_leaves_a_file_that_appears_meanwhile(base: type[DiskOperations], tmp_path: Path) -> None:
    class SlowDisk(base):  # type: ignore[valid-type,misc]
        def fsync(self, fd: int) -> None:
            (tmp_path / "file").write_bytes(b"of another writer")

    with pytest.raises(FileChangedError, match="exists already"):
        write_atomic(tmp_path / "file", NEW, must_not_exist=True, operations=SlowDisk())

    assert (tmp_path / "file").read_bytes() == b"of another writer"
    assert names_in(tmp_path) == {"file"}


def test_write_atomic_works_without_links(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(OLD)

    write_atomic(tmp_path / "old", NEW, operations=LinklessDisk())
    write_atomic(tmp_path / "new", NEW, must_not_exist=True, operations=LinklessDisk())

    assert (tmp_path / "old").read_bytes() == (tmp_path / "new").read_bytes() == NEW
    assert names_in(tmp_path) == {"old", "new"}


def test_write_atomic_works_without_folder_sync(tmp_path: Path) -> None:
    write_atomic(tmp_path / "file", NEW, operations=LinklessDisk(folder_error=errno.EINVAL))

    assert (tmp_path / "file").read_bytes() == NEW


def test_write_atomic_reports_unconfirmed_new_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    with pytest.raises(ToolError, match="holds the new content, but the disk did not confirm it"):
        write_atomic(tmp_path / "file", NEW, operations=LinklessDisk(folder_error=errno.EIO))

    assert (tmp_path / "file").read_bytes() == NEW


def failing_steps() -> Iterator[tuple[int, str]]:
    # A failing backup link is no failure of the write: there is only no way back then.
    return ((number, name) for number, name in enumerate(steps_of()) if name != "link")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("step", [pytest.param(number, id=f"{number}-{name}") for number, name in failing_steps()])
def test_write_atomic_error_leaves_the_old_file_and_no_litter(step: int, error: int, tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_bytes(OLD)
    target.chmod(0o640)
    before = target.stat()

    with pytest.raises(ToolError, match=f"{os.strerror(error)}; nothing was changed"):
        write_atomic(target, NEW, operations=FailingDisk(step, error))

    after = target.stat()
    assert target.read_bytes() == OLD
    assert (after.st_ino, after.st_mode, after.st_mtime_ns) == (before.st_ino, before.st_mode, before.st_mtime_ns)
    assert after.st_nlink == 1
    assert names_in(tmp_path) == {"file"}


def test_write_atomic_survives_an_error_at_the_backup(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    step = steps_of().index("link")

    write_atomic(tmp_path / "file", NEW, operations=FailingDisk(step, errno.EIO))

    assert (tmp_path / "file").read_bytes() == NEW
    assert names_in(tmp_path) == {"file"}


@pytest.mark.parametrize("is_exclusive", [True, False])
def test_write_atomic_error_leaves_no_part_of_a_new_file(is_exclusive: bool, tmp_path: Path) -> None:
    steps = steps_of("a/b/file", exists=False, must_not_exist=is_exclusive)

    assert steps.count("fsync folder") == 3
    for step in range(len(steps)):
        with pytest.raises(ToolError, match="nothing was changed"):
            write_atomic(
                tmp_path / "a" / "b" / "file",
                NEW,
                must_not_exist=is_exclusive,
                operations=FailingDisk(step, errno.ENOSPC),
            )
        assert names_in(tmp_path) == set()


def test_write_atomic_syncs_file_then_renames_then_syncs_folder() -> None:
    steps = steps_of()

    assert steps.index("fsync") > max(i for i, step in enumerate(steps) if step == "write")
    assert steps.index("replace") > steps.index("fsync")
    assert steps[-1] == "fsync folder"


def test_write_atomic_interrupted_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)

    class Interrupted(DiskOperations):
        def fsync(self, fd: int) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(tmp_path / "file", NEW, operations=Interrupted())

    assert (tmp_path / "file").read_bytes() == OLD
    assert names_in(tmp_path) == {"file"}


def test_write_atomic_keeps_the_new_file_private_until_done(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    (tmp_path / "file").chmod(0o600)
    modes: list[int] = []

    class Watching(DiskOperations):
        def write(self, fd: int, data: memoryview) -> int:
            modes.append(stat.S_IMODE(os.fstat(fd).st_mode))
            return super().write(fd, data)

    write_atomic(tmp_path / "file", NEW, operations=Watching())

    assert modes == [0o600]


@given(contents=st.lists(st.binary(max_size=200), min_size=1, max_size=5))
@settings(deadline=None, max_examples=30)
def test_write_atomic_round_trips(contents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as name:
        for content in contents:
            write_atomic(Path(name) / "file", content)
            assert (Path(name) / "file").read_bytes() == content
        assert names_in(Path(name)) == {"file"}
