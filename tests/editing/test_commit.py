"""Writing several files, when one of them fails."""

import fcntl
import os
import stat
import threading

import anyio
import pytest

from panpan.core.file_writer import DiskWriter, OtherContentError
from panpan.core.tool import SeenFiles, digest_of
from panpan.editing.commit import FileChange, commit, find_target
from panpan.errors import ToolError


def change(workspace, name, before, after):
    return FileChange(find_target(name, workspace.ctx), before, after)


async def test_commit_undoes_earlier_writes_after_a_failure(workspace):
    # given a change, a creation in new folders and a deletion that would work, and a file that another has changed
    workspace.put("a", "a\n").chmod(0o754)
    workspace.put("c", "c\n").chmod(0o640)
    workspace.put("stale", "somebody else's\n")
    changes = [
        change(workspace, "a", b"a\n", b"A\n"),
        change(workspace, "new/deep/b", None, b"B\n"),
        change(workspace, "stale", b"expected\n", b"S\n"),
        change(workspace, "c", b"c\n", None),
    ]
    before = workspace.contents()
    seen = SeenFiles()

    # when
    with pytest.raises(ToolError) as caught:
        await commit(changes, seen, DiskWriter())

    # then
    assert workspace.contents() == before
    assert not (workspace.root / "new").exists()
    assert stat.S_IMODE((workspace.root / "a").stat().st_mode) == 0o754
    assert "stale has changed" in str(caught.value)
    assert "nothing is changed" in str(caught.value)
    assert seen.digest(workspace.root / "a") is None


async def test_commit_undoes_deletions_after_a_failure(workspace):
    workspace.put("a", "a\n").chmod(0o640)
    workspace.put("b", "changed\n")
    changes = [change(workspace, "a", b"a\n", None), change(workspace, "b", b"b\n", None)]
    with pytest.raises(ToolError, match="nothing is changed"):
        await commit(changes, SeenFiles(), DiskWriter())
    assert workspace.contents() == {"a": b"a\n", "b": b"changed\n"}
    assert stat.S_IMODE((workspace.root / "a").stat().st_mode) == 0o640


async def test_commit_keeps_the_words_of_a_single_failure(workspace):
    workspace.put("a", "changed\n")
    with pytest.raises(ToolError, match=r"^a has changed since") as caught:
        await commit([change(workspace, "a", b"a\n", b"A\n")], SeenFiles(), DiskWriter())
    assert "put back" not in str(caught.value)


async def test_commit_names_files_that_it_cannot_restore(workspace):
    # given a second file that waits for its lock, during which another program changes the first one again
    first, second = workspace.put("a", "a\n"), workspace.put("b", "b\n")
    changes = [change(workspace, "a", b"a\n", b"A\n"), change(workspace, "b", b"b\n", b"B\n")]
    holder = os.open(second, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)

    def meddle():
        while first.read_bytes() != b"A\n":
            pass
        first.write_bytes(b"meddled\n")
        second.write_bytes(b"meddled, too\n")
        os.close(holder)

    meddler = threading.Thread(target=meddle)
    meddler.start()

    # when
    with pytest.raises(ToolError) as caught:
        await commit(changes, SeenFiles(), DiskWriter())
    meddler.join()

    # then
    assert "except these, which are changed: a (" in str(caught.value)
    assert workspace.contents() == {"a": b"meddled\n", "b": b"meddled, too\n"}


async def test_commit_finishes_a_write_when_the_turn_is_cancelled(workspace):
    # given a write that waits for a lock
    path = workspace.put("a", "a\n")
    holder = os.open(path, os.O_RDONLY)
    fcntl.flock(holder, fcntl.LOCK_EX)
    seen = SeenFiles()

    # when it is cancelled meanwhile
    async with anyio.create_task_group() as task_group:
        task_group.start_soon(commit, [change(workspace, "a", b"a\n", b"A\n")], seen, DiskWriter())
        await anyio.wait_all_tasks_blocked()
        task_group.cancel_scope.cancel()
        os.close(holder)

    # then it is done, and what the model is known to know agrees with what is on disk
    assert path.read_bytes() == b"A\n"
    assert seen.digest(path) == digest_of(b"A\n")


async def test_commit_forgets_a_deleted_file(workspace):
    path = workspace.put_seen("a", "a\n")
    await commit([change(workspace, "a", b"a\n", None)], workspace.ctx.seen_files, DiskWriter())
    assert not path.exists()
    assert workspace.ctx.seen_files.digest(path) is None


class FormattingWriter(DiskWriter):
    """Writes something else into the file `b`."""

    def write(self, path, data, *, mode, expected_digest):
        is_formatted = path.name == "b"
        super().write(path, data.upper() if is_formatted else data, mode=mode, expected_digest=expected_digest)
        if is_formatted:
            raise OtherContentError(f"something else is in {path}")


async def test_commit_says_if_something_else_was_written(workspace):
    workspace.put("a", "a\n")
    workspace.put("b", "b\n")
    changes = [change(workspace, "a", b"a\n", b"c\n"), change(workspace, "b", b"b\n", b"d\n")]

    with pytest.raises(ToolError, match=r"^something else is in b; the other files of this call were put back$"):
        await commit(changes, SeenFiles(), FormattingWriter())

    assert workspace.contents() == {"a": b"a\n", "b": b"D\n"}
