"""Folders come and go as files do: the empty ones, and the permission bits of all."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from panpan.errors import SnapshotError
from panpan.file_trees.kept_files import KeepLimits, stat_paths
from panpan.system.files.atomic_write import temporary_name
from panpan.system.files.folder_tree import make_folders, remove_tree
from panpan.system.sandbox.profile import ALWAYS
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds
from tests.needed_programs import need


@pytest.fixture
def place(tmp_path: Path) -> KeptWorkspace:
    return KeptWorkspace(tmp_path)


async def test_empty_folders_come_and_go(place: KeptWorkspace) -> None:
    place.write("file", "x\n")
    (place.folder / "old/deep").mkdir(parents=True)

    def change() -> None:
        shutil.rmtree(place.folder / "old")
        (place.folder / "new/deep").mkdir(parents=True)

    await place.turn(change)
    files = place.snapshots.turn_files
    await place.undo()
    after_undo = place.folders()
    await place.redo()

    assert kinds(files) == {"old/deep/": "deleted", "new/deep/": "added"}
    assert after_undo.keys() == {"old", "old/deep"}
    assert place.folders().keys() == {"new", "new/deep"}
    assert place.warnings == []


async def test_sandbox_placeholders_are_no_changes_and_stay(place: KeptWorkspace) -> None:
    for name in ALWAYS[:5]:
        (place.folder / name).mkdir()

    def change() -> None:
        place.write("file", "x\n")
        for name in ALWAYS[:5]:
            (place.folder / name).rmdir()
        for name in ALWAYS[5:]:
            (place.folder / name).mkdir()

    await place.turn(change)
    plan = await place.undo()

    assert kinds(place.snapshots.turn_files) == {"file": "added"}
    assert kinds(plan.files) == {"file": "deleted"}
    assert place.folders().keys() == set(ALWAYS[5:])
    assert place.warnings == []


async def test_protected_folder_with_a_file_is_a_change(place: KeptWorkspace) -> None:
    await place.turn(
        lambda: (place.write(".vscode/tasks.json", "{}\n"), (place.folder / ".idea/deep").mkdir(parents=True))
    )

    assert kinds(place.snapshots.turn_files) == {".vscode/tasks.json": "added", ".idea/deep/": "added"}


async def test_folder_that_was_empty_stays_and_a_new_one_goes(place: KeptWorkspace) -> None:
    (place.folder / "out").mkdir()
    await place.turn(lambda: (place.write("out/result", "x\n"), place.write("made/deep/file", "x\n")))
    plan = await place.undo()

    assert kinds(plan.files) == {"out/result": "deleted", "made/deep/file": "deleted"}
    assert place.folders().keys() == {"out"}


async def test_folder_that_lost_its_last_file_stays(place: KeptWorkspace) -> None:
    place.write("cache/file", "x\n")
    await place.turn(lambda: (place.folder / "cache/file").unlink())
    await place.turn(lambda: (place.folder / "cache").rmdir())
    await place.undo()

    assert (place.state(), place.folders().keys()) == ({}, {"cache"})


async def test_folder_bits_are_restored(place: KeptWorkspace) -> None:
    place.write("private/key", "k\n", 0o600)
    place.write("open/file", "x\n")
    (place.folder / "private").chmod(0o700)
    before = place.folders()

    def change() -> None:
        shutil.rmtree(place.folder / "private")
        (place.folder / "open").chmod(0o500)

    await place.turn(change)
    files = place.snapshots.turn_files
    await place.undo()

    assert kinds(files) == {"private/key": "deleted", "open/": "modified"}
    assert place.folders() == before == {"private": 0o700, "open": 0o755}


async def test_turn_that_only_makes_a_folder_is_undone(place: KeptWorkspace) -> None:
    await place.turn(lambda: (place.folder / "a").mkdir())
    await place.undo()

    assert place.folders() == {}
    with pytest.raises(SnapshotError, match="nothing to undo"):
        await place.undo()


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_folder_used_by_the_user_since_stays_with_its_bits(place: KeptWorkspace, what: str) -> None:
    def change() -> None:
        place.write("made/file", "x\n")
        (place.folder / "made").chmod(0o700)

    await place.turn(change)
    if what == "file":
        place.write("made/theirs", "user\n")
    else:
        (place.folder / "made/theirs").mkdir()
    plan = await place.undo()

    assert kinds(plan.files) == {"made/file": "deleted"}
    assert place.folders()["made"] == 0o700
    assert (place.folder / "made/theirs").exists()
    assert not (place.folder / "made/file").exists()


async def test_folder_is_not_restored_over_a_file_of_the_user(place: KeptWorkspace) -> None:
    (place.folder / "a").mkdir()
    await place.turn(lambda: ((place.folder / "a").rmdir(), place.write("b", "x\n")))
    place.write("a", "user\n")
    plan = await place.undo()

    assert kinds(plan.files) == {"b": "deleted"}
    assert place.read("a") == "user\n"


async def test_names_that_git_refuses_are_left_out_and_reported(place: KeptWorkspace) -> None:
    place.write(".GIT/config", "x\n")
    place.write("a/.Git", "x\n")
    place.write("a/kept", "1\n")
    (place.folder / ".gitmodules").symlink_to("a/kept")
    await place.turn(lambda: place.write("a/kept", "2\n"))
    await place.turn(lambda: place.write("a/kept", "3\n"))
    await place.undo()

    assert place.read("a/kept") == "2\n"
    (warning,) = place.warnings
    assert all(part in warning for part in (".GIT/ (git keeps", "a/.Git (git keeps", ".gitmodules (git keeps"))


async def test_leftovers_of_a_killed_undo_are_not_the_users(place: KeptWorkspace) -> None:
    place.write("a", "1\n")
    await place.turn(lambda: place.write("a", "2\n"))
    leaving = temporary_name()
    place.write(leaving.replace(f"-{os.getpid()}-", f"-{pid_of_a_process_that_has_ended()}-"), "half")
    plan = await place.undo()

    assert kinds(plan.files) == {"a": "modified"}
    assert place.state().keys() == {"a"}


def pid_of_a_process_that_has_ended() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid


OPENING = """
import shutil
import sys
from pathlib import Path
import anyio
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace

def state(place):
    return place.state(), place.folders()

async def main(base):
    place = KeptWorkspace(Path(base))
"""

SHUT_FOLDERS = """
    place.write("shut/file", "1\\n")
    place.write("closing/file", "1\\n")
    place.write("secret", "1\\n", 0)
    place.write("b", "1\\n")
    (place.folder / "shut").chmod(0)

    def change():
        place.write("b", "2\\n")
        place.write("closing/file", "2\\n")
        (place.folder / "closing").chmod(0)

    await place.turn(change)
    await place.turn(lambda: place.write("b", "3\\n"))
    await place.undo()
    await place.undo()
    print(sorted(place.warnings))
    (place.folder / "closing").chmod(0o700)
    print(place.read("b").strip(), place.read("closing/file").strip())

anyio.run(main, sys.argv[1])
"""

LOCKED_FOLDERS = """
    for path in ("d/a", "d/e/b", "lock/x", "gone/deep/x"):
        place.write(path, "1")
    place.write("locked", "1", 0o444)
    (place.folder / "gone/deep").chmod(0o555)
    before = state(place)

    def change():
        place.write("d/a", "2")
        place.write("d/new", "2")
        shutil.rmtree(place.folder / "d/e")
        (place.folder / "d").chmod(0o555)
        (place.folder / "locked").chmod(0o644)
        place.write("locked", "2", 0o400)
        place.write("made/x", "2")
        (place.folder / "made").chmod(0o555)
        (place.folder / "gone/deep").chmod(0o755)
        shutil.rmtree(place.folder / "gone")
        (place.folder / "lock/x").unlink()
        (place.folder / "lock").chmod(0o500)

    await place.turn(change)
    after = state(place)
    await place.undo()
    print(state(place) == before)
    await place.redo()
    print(state(place) == after)
    for folder in ("d", "made", "lock"):
        (place.folder / folder).chmod(0o755)

anyio.run(main, sys.argv[1])
"""


def run_without_rights(script: str, place: Path) -> str:
    """Run a script as somebody whom permission bits keep out, and return what it printed."""
    need("setpriv")
    argv = [sys.executable, "-c", OPENING + script, str(place)]
    if os.geteuid() == 0:
        rights = "-dac_override,-dac_read_search,-fowner"
        argv = ["setpriv", f"--inh-caps={rights}", f"--bounding-set={rights}", *argv]
    done = subprocess.run(argv, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    return done.stdout


def test_closed_folders_are_reported_once_and_stop_nothing(tmp_path: Path) -> None:
    warnings, content = run_without_rights(SHUT_FOLDERS, tmp_path).splitlines()

    assert warnings == str(
        [
            "/undo does not cover closing/ (it cannot be entered)",
            "/undo does not cover secret (it cannot be read), shut/ (it cannot be entered)",
        ]
    )
    assert content == "1 2"


def test_read_only_files_are_restored(tmp_path: Path) -> None:
    assert run_without_rights(LOCKED_FOLDERS, tmp_path) == "True\nTrue\n"


async def test_files_1500_folders_deep_are_covered(tmp_path: Path) -> None:
    deep = "/".join(["d"] * 1500)
    make_folders(tmp_path / deep)
    (tmp_path / deep / "file").write_text("x")

    found = stat_paths(tmp_path, [f"{deep}/file"], KeepLimits())
    remove_tree(tmp_path / "d")

    assert list(found.bits) == [f"{deep}/file"]
