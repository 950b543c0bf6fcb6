"""Two panpans in one folder at once: neither waits for the other, and each takes back its own."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest

from tests.services.snapshots.kept_workspace import KeptWorkspace

SESSION = """
import sys
import time
from pathlib import Path
import anyio
from tests.services.snapshots.kept_workspace import KeptWorkspace

async def main(base, name):
    place = KeptWorkspace(Path(base), session=name)
    for number in range(8):
        await place.turn(lambda: place.write(f"{name}/{number}", f"{number}\\n"))
    print(place.warnings)

anyio.run(main, *sys.argv[1:])
"""


def test_two_processes_keep_the_same_folder(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    for number in range(50):
        place.write(f"shared/{number}", f"{number}\n")
    names = ("one", "two")
    root = Path(__file__).parents[3]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SESSION, str(tmp_path), name], cwd=root, stdout=subprocess.PIPE, text=True
        )
        for name in names
    ]
    printed = [process.communicate(timeout=60)[0] for process in running]

    assert printed == ["[]\n", "[]\n"]
    assert len(place.state()) == 66
    anyio.run(undo_all, place, names)
    assert set(place.state()) == {f"shared/{number}" for number in range(50)}


async def undo_all(place: KeptWorkspace, names: Sequence[str]) -> None:
    for name in names:
        other = KeptWorkspace(place.folder.parent, session=name)
        for _ in range(8):  # what the other did in the same moment counts as its own, too
            await other.undo()


async def test_a_snapshot_that_was_cut_off_does_not_stop_the_next(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    await place.turn(lambda: place.write("a", "1\n"))
    (index,) = [path for path in place.home.rglob("indexes/*") if not path.suffix]
    index.with_name(f"{index.name}.lock").write_bytes(b"of a git that was killed")
    await place.turn(lambda: place.write("a", "2\n"))
    await place.undo()

    assert place.read("a") == "1\n"
    assert place.warnings == []


async def test_a_change_in_the_second_of_the_last_snapshot_is_seen_by_the_next_session(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("v", "000\n")
    await place.turn(lambda: place.write("w", "the first snapshot takes longest\n"))
    for _ in range(20):
        await anyio.sleep(1 - time.time() % 1)  # to the beginning of a second
        await place.turn(lambda: place.write("v", "aaa\n"))
        written = int((place.folder / "v").stat().st_mtime)
        with (place.folder / "v").open("r+b") as file:  # the same file, of the same size
            file.write(b"UUU\n")
        if int((place.folder / "v").stat().st_mtime) == written:
            break
    else:
        pytest.skip("this machine is too slow to do both in one second")
    await anyio.sleep(1.1)

    later = KeptWorkspace(tmp_path, session="session-2")
    await later.turn(lambda: later.write("v", "ccc\n"))
    await later.undo()

    assert later.read("v") == "UUU\n"
