"""Two panpans in one folder at once: neither waits for the other, and none takes back what may be the other's."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copy2

import anyio
import pytest

from tests.capabilities.guards.hook_fixtures import call_in
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds

SESSION = """
import sys
import time
from pathlib import Path
import anyio
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace

async def main(base, name):
    place = KeptWorkspace(Path(base), session=name)
    for number in range(8):
        await place.turn(lambda: place.write(f"{name}/{number}", f"{number}\\n"))
    print(place.warnings)

anyio.run(main, *sys.argv[1:])
"""


def test_undo_works_for_two_processes_in_one_folder(tmp_path: Path) -> None:
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
    left = place.state().keys()
    assert left >= {f"shared/{number}" for number in range(50)}


async def undo_all(place: KeptWorkspace, names: Sequence[str]) -> None:
    """Undo each session; nothing that may be the other's goes, and what only this one has seen change does."""
    for name in names:
        before = place.state().keys()
        other = KeptWorkspace(place.folder.parent, session=name)
        for _ in range(8):
            plan = await other.snapshots.undo.plan_undo()
            contested = {path for path, why in plan.conflicts.items() if "another session" in why}
            await other.snapshots.undo.restore(plan)
            assert not contested - place.state().keys()
        assert {path for path in before - place.state().keys() if not path.startswith(f"{name}/")} == set()


@pytest.mark.parametrize("how", ["inside", "open", "before", "after"])
async def test_changes_of_another_session_stay(tmp_path: Path, how: str) -> None:
    one, two = KeptWorkspace(tmp_path, session="one"), KeptWorkspace(tmp_path, session="two")
    for name in ("shared", "theirs"):
        one.write(name, "0\n")
    if how == "before":
        await two.turn(lambda: two.write("theirs", "two\n"))
    await one.begin_turn()
    await one.snapshots.rounds.before_effect(call_in(one.folder))
    one.write("ours", "one\n")
    if how in ("inside", "open"):
        await two.begin_turn()
        await two.snapshots.rounds.before_effect(call_in(two.folder))
        two.write("theirs", "two\n")
        if how == "inside":
            await two.end_turn()
    await one.end_turn()
    if how == "after":
        await two.turn(lambda: two.write("theirs", "two\n"))
    plan = await one.undo()

    assert plan.conflicts == (
        {"theirs": "another session changed it, too, while this one did"} if how in ("inside", "open") else {}
    )
    assert {name: one.read(name) for name in one.state()} == {"shared": "0\n", "theirs": "two\n"}


async def test_sessions_that_see_the_same_changes_keep_them(tmp_path: Path) -> None:
    one, two = KeptWorkspace(tmp_path, session="one"), KeptWorkspace(tmp_path, session="two")
    for session in (one, two):
        await session.begin_turn()
        await session.snapshots.rounds.before_effect(call_in(session.folder))
    for session in (one, two):
        session.write(session.log.stem, "1\n")
    for session in (one, two):
        await session.end_turn()

    for session in (one, two):
        assert (await session.undo()).conflicts.keys() == {"one", "two"}
    assert one.state().keys() == {"one", "two"}


async def test_fork_of_a_session_is_no_other_session(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.turn(lambda: place.write("a", "1\n"), lambda: place.write("a", "2\n"))
    copy2(place.log, place.log.with_name("fork.jsonl"))
    fork = KeptWorkspace(tmp_path, session="fork")

    assert kinds((await fork.undo()).files) == {"a": "deleted"}
    assert list((await place.undo()).files) == []
    assert kinds((await fork.redo()).files) == {"a": "added"}


async def test_undo_of_another_session_is_not_repeated(tmp_path: Path) -> None:
    one, two = KeptWorkspace(tmp_path, session="one"), KeptWorkspace(tmp_path, session="two")
    await two.turn(lambda: two.write("theirs", "two\n"))
    await one.begin_turn()
    await one.snapshots.rounds.before_effect(call_in(one.folder))
    one.write("ours", "one\n")
    await two.undo()
    await one.end_turn()
    plan = await one.undo()

    assert list(plan.conflicts) == ["theirs"]
    assert one.state() == {}


async def test_snapshot_cut_off_does_not_stop_the_next(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("a", "0\n")
    await place.turn(lambda: place.write("a", "1\n"))
    (index,) = [path for path in place.home.rglob("indexes/*") if not path.suffix]
    index.with_name(f"{index.name}.lock").write_bytes(b"of a git that was killed")
    await place.turn(lambda: place.write("a", "2\n"))
    await place.undo()

    assert place.read("a") == "1\n"
    assert place.warnings == []


async def test_change_in_the_second_of_a_snapshot_is_seen_later(tmp_path: Path) -> None:
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
