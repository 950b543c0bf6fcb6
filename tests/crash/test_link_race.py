"""Nothing is read or written outside while another program swaps folders and links under the tools, for real.

`PANPAN_SWAPS=100000 python -m pytest tests/crash/test_link_race.py` does it for longer.
"""

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from panpan.capabilities.datasets.download_job import PlannedPart
from panpan.capabilities.datasets.download_plan import PlannedFile, RemoteFile
from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.files.write import WriteTool
from panpan.capabilities.search.ls import LsTool
from panpan.core.tool import ToolContext
from panpan.errors import PanpanError, SnapshotError
from panpan.file_trees.writing import write_changes
from panpan.types.events import Output
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace
from tests.crash import swapper
from tests.fakes.context import context_in

SWAPS = int(os.environ.get("PANPAN_SWAPS", "3000"))
TOOLS = {tool.name: tool for tool in (ReadTool(), WriteTool(), EditTool(), RenameTool(), PatchTool(), LsTool())}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="renameat2, which swaps at one stroke, is of Linux")


@asynccontextmanager
async def swapped(workspace: Path) -> AsyncGenerator[anyio.abc.Process, None]:
    """Let a program swap `sub` for a link to the folder outside, until it has done so often enough."""
    (workspace / "way").symlink_to("../outside")
    argv = [sys.executable, swapper.__file__, str(workspace), str(SWAPS)]
    async with await anyio.open_process(argv, stdin=None, stdout=None, stderr=None) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                process.kill()


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return what is in a folder, with modes and the numbers of names."""
    found = {}
    for path in folder.rglob("*"):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_nlink if content else 0, content)
    return found


def calls_of(number: int) -> list[tuple[str, dict[str, Any]]]:
    """Return calls of all kinds for one round; what they write has another name each time."""
    name = f"name-{number % swapper.NAMES}.txt"
    added = f"*** Add File: sub/deep-{number}/x.sh\n+one\n*** Delete File: sub/new-{number}.txt\n"
    return [
        ("LS", {"path": "sub"}),
        ("Read", {"file_path": "sub/told.txt"}),
        ("Read", {"file_path": name}),
        ("Write", {"file_path": f"sub/new-{number}.txt", "content": "new\n"}),
        ("Write", {"file_path": name, "content": f"{number}\n"}),
        ("Edit", {"file_path": "sub/a.txt", "old_string": "one", "new_string": "two"}),
        ("Edit", {"file_path": "sub/a.txt", "old_string": "two", "new_string": "one"}),
        ("Rename", {"old_name": "word", "new_name": "other", "file_paths": ["sub/a.txt"]}),
        ("Rename", {"old_name": "other", "new_name": "word", "file_paths": ["sub/a.txt"]}),
        ("Patch", {"patch": f"*** Begin Patch\n*** Delete File: {name}\n*** End Patch"}),
        ("Patch", {"patch": f"*** Begin Patch\n{added}*** End Patch"}),
    ]


async def output_of(name: str, arguments: dict[str, Any], ctx: ToolContext) -> str:
    tool = TOOLS[name]
    async with aclosing(tool.run(tool.input_model.model_validate(arguments), ctx)) as yields:
        return "".join([one.text async for one in yields if isinstance(one, Output)])


def download(folder: Path, number: int) -> None:
    """Put a downloaded file into its place, as DatasetDownload does."""
    target = folder / f"words-{number}"
    part = target.with_name(f".words-{number}.part")
    remote = RemoteFile("http://data.example.org/words", "words", 4)
    with PlannedPart(PlannedFile(remote, target, part, 0, is_there=False)) as file:
        file.write(b"four")
        file.finish()


async def test_tools_write_nothing_outside_while_links_are_swapped(tmp_path: Path) -> None:
    root, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (root, root / "sub", outside):
        folder.mkdir()
        (folder / "a.txt").write_text("one word\n")
    (root / "sub" / "told.txt").write_text("told\n")
    for name in ("told.txt", "SECRET.txt", *(f"chosen-{number}.txt" for number in range(swapper.NAMES // 2))):
        (outside / name).write_text("SECRET\n")
    ctx = context_in(root)
    ctx.seen_files.add(root / "sub" / "a.txt", b"one word\n")
    before, told, done, number = state_of(outside), list[str](), 0, 0

    async with swapped(root) as process:
        while process.returncode is None:
            number += 1
            for name, arguments in calls_of(number):
                try:
                    told.append(await output_of(name, arguments, ctx))
                    done += 1
                except PanpanError as error:
                    told.append(str(error))
            with suppress(PanpanError):
                await anyio.to_thread.run_sync(download, root / "sub", number)
            await anyio.lowlevel.checkpoint()

    assert process.returncode == 0
    assert state_of(outside) == before
    assert not [text for text in told if "SECRET" in text]
    assert not [path for path in root.rglob("*") if path.name.startswith(".panpan-")]
    assert done


def as_after_the_turn(folder: Path) -> None:
    """Make a folder what the turn leaves, whose undoing is raced: changed, new, gone, another mode, links."""
    for name, text in {"a.txt": "new\n", "made.txt": "made\n", "mode.txt": "mode\n", "was-link": "file\n"}.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_text(text)
    (folder / "mode.txt").chmod(0o600)
    (folder / "gone.txt").unlink(missing_ok=True)
    with suppress(OSError):
        (folder / "gone").rmdir()


async def test_undo_changes_nothing_outside_while_links_are_swapped(tmp_path: Path) -> None:
    place, outside = KeptWorkspace(tmp_path), tmp_path / "outside"
    place.write("sub/a.txt", "old\n")
    place.write("sub/gone.txt", "gone\n")
    place.write("sub/mode.txt", "mode\n", 0o644)
    (place.folder / "sub" / "was-link").symlink_to("a.txt")
    (place.folder / "sub" / "gone").mkdir()
    await place.turn(lambda: as_after_the_turn(place.folder / "sub"))
    (plan,) = (await place.snapshots.undo.plan_undo()).folders
    outside.mkdir()
    as_after_the_turn(outside)  # so that all fits there, too
    before, done = state_of(outside), 0
    inside = os.open(place.folder / "sub", os.O_RDONLY)

    async with swapped(place.folder) as process:
        while process.returncode is None:
            with suppress(SnapshotError):
                await write_changes(plan.store.repository, plan.changes)
                done += 1
            as_after_the_turn(Path(f"/proc/self/fd/{inside}"))
    os.close(inside)

    assert process.returncode == 0
    assert state_of(outside) == before
