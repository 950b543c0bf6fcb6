"""Snapshots around the rounds of a turn: when they are taken, and what waits for them."""

import os
from hashlib import sha1
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from panpan.capabilities.files.write import WriteTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import ToolCall
from panpan.file_trees.own_repository import OwnRepository
from panpan.types.events import Output
from panpan.types.messages import SystemReminder
from tests.capabilities.guards.hook_fixtures import call_in, reply, round_of
from tests.capabilities.snapshots.kept_workspace import KeptWorkspace, kinds
from tests.fakes.context import context_in
from tests.system.backends import on_both_backends, run_on, until


def objects(place: KeptWorkspace) -> int:
    """Return the number of object files; git may remove folders meanwhile, which `os.walk` does not mind."""
    return sum(len(files) for folder, _, files in os.walk(place.home) if Path(folder).parent.name == "objects")


def snapshots(place: KeptWorkspace) -> list[tuple[str, bool]]:
    """Return the records of snapshots: their cause, and whether they tell the end."""
    records = [record for record in place.records if record.get("subtype") == "snapshot"]
    return [(record["cause"], "after" in record) for record in records]


async def test_reading_turn_records_nothing(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.turn()

    assert snapshots(place) == []


async def test_first_snapshot_is_logged_before_the_call_runs(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    seen: list[list[tuple[str, bool]]] = []
    await place.turn(lambda: seen.append(snapshots(place)))

    assert seen == [[("turn", False)]]
    assert snapshots(place) == [("turn", False), ("turn", True)]


async def test_calls_of_one_round_share_their_first_snapshot(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.begin_turn()
    for name in ("a", "b"):
        await place.snapshots.rounds.before_effect(call_in(place.folder))
        place.write(name, "x\n")
    await place.snapshots.rounds.after_round(round_of(), reply())
    await place.snapshots.rounds.turn_ended(Conversation())

    assert snapshots(place) == [("turn", False), ("turn", True)]
    assert kinds(place.snapshots.turn_files) == {"a": "added", "b": "added"}


async def test_woken_turn_is_undone_by_itself(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    prompt = await place.turn(lambda: place.write("a", "x\n"))
    told = SystemReminder(text="a task has ended", cause="task:1")
    await place.snapshots.rounds.turn_started(Conversation(messages=[prompt, reply(), told]))
    await place.round(lambda: place.write("b", "x\n"))
    await place.end_turn()
    await place.undo()

    assert list(place.state()) == ["a"]


async def test_interrupted_round_is_kept_too(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.begin_turn()
    await place.snapshots.rounds.before_effect(call_in(place.folder))
    place.write("a", "x\n")
    await place.snapshots.rounds.turn_ended(Conversation())
    await place.undo()

    assert place.state() == {}


@on_both_backends
def test_interrupted_round_end_is_kept_at_the_end_of_the_turn(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        place = KeptWorkspace(tmp_path)
        await place.begin_turn()
        await place.snapshots.rounds.before_effect(call_in(place.folder))
        place.write("a", "x\n")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await place.snapshots.rounds.after_round(round_of(), reply())
        assert snapshots(place) == [("turn", False)]
        await place.end_turn()

        assert snapshots(place) == [("turn", False), ("turn", True)]
        assert kinds(place.snapshots.turn_files) == {"a": "added"}

    run_on(backend, main)


@on_both_backends
def test_first_snapshot_is_taken_while_the_model_thinks(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        place = KeptWorkspace(tmp_path)
        place.write("a", "x\n")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(place.snapshots.rounds.serve)
            await anyio.wait_all_tasks_blocked()
            assert objects(place) == 0
            await place.begin_turn()
            await until(lambda: objects(place) > 0)
            await place.snapshots.rounds.before_effect(call_in(place.folder))
            place.write("a", "y\n")
            await place.snapshots.rounds.turn_ended(Conversation())
            await place.undo()
            tasks.cancel_scope.cancel()
        assert place.read("a") == "x\n"

    run_on(backend, main)


async def test_calls_wait_once_for_the_first_snapshot_and_say_so(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    rounds = place.snapshots.rounds
    rounds.first_wait_s = 0.01
    await place.begin_turn()

    async def hold(*, task_status: TaskStatus[None]) -> None:
        async with place.snapshots.workspace.lock:  # as while the first snapshot is being taken
            task_status.started()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        await tasks.start(hold)
        await rounds.before_effect(call_in(place.folder))
        rounds.first_wait_s = 3_600
        with anyio.fail_after(20):
            await rounds.before_effect(call_in(place.folder))
            await rounds.after_round(round_of(), reply())
            await rounds.turn_ended(Conversation())
        tasks.cancel_scope.cancel()

    assert snapshots(place) == []
    assert len(place.warnings) == 1
    assert "still being taken" in place.warnings[0]
    await place.turn(lambda: place.write("a", "x\n"))
    assert kinds((await place.undo()).files) == {"a": "deleted"}


@on_both_backends
def test_change_of_the_user_during_a_waiting_call_is_theirs(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        place = KeptWorkspace(tmp_path)
        rounds = place.snapshots.rounds
        place.write("theirs", "0\n")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rounds.serve)
            await place.begin_turn()
            for number, name in enumerate("ab"):
                call = call_in(place.folder, tool_use_id=name)
                await rounds.before_effect(call)
                place.write(name, "x\n")
                await rounds.after_tool(call, Output("done"))
                if number == 0:  # the user is asked about the next call
                    await until(lambda: snapshots(place) == [("turn", False), ("turn", True)])
                    place.write("theirs", "user\n")
            await place.end_turn()
            files = place.snapshots.turn_files
            plan = await place.undo()
            tasks.cancel_scope.cancel()

        assert kinds(files) == {"a": "added", "b": "added"}
        assert kinds(plan.files) == {"a": "deleted", "b": "deleted"}
        assert place.read("theirs") == "user\n"

    run_on(backend, main)


@on_both_backends
def test_round_end_is_kept_between_request_and_next_call(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        place = KeptWorkspace(tmp_path)
        rounds = place.snapshots.rounds
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rounds.serve)
            await place.begin_turn()
            await until(lambda: objects(place) > 0)  # the first snapshot
            await place.round(lambda: place.write("a", "1\n"))
            assert snapshots(place) == [("turn", False)]
            await until(lambda: len(snapshots(place)) == 2)
            place.write("theirs", "user\n")
            await place.round(lambda: place.write("b", "1\n"))
            await place.round(lambda: place.write("c", "1\n"))
            assert [is_end for _, is_end in snapshots(place)] == [False, True, False, True, False]
            await place.end_turn()
            files = place.snapshots.turn_files
            await place.undo()
            tasks.cancel_scope.cancel()

        assert kinds(files) == dict.fromkeys("abc", "added")
        assert place.state().keys() == {"theirs"}

    run_on(backend, main)


@on_both_backends
def test_snapshot_is_never_taken_within_a_call(tmp_path: Path, backend: str) -> None:
    async def main() -> None:
        place = KeptWorkspace(tmp_path)
        rounds = place.snapshots.rounds
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rounds.serve)
            await place.begin_turn()
            first, second = (call_in(place.folder, tool_use_id=name) for name in "ab")
            await rounds.before_effect(first)
            await rounds.after_tool(first, Output("done"))
            await rounds.before_effect(second)
            await rounds.after_tool(first, Output("of another call"))
            place.write("a", "x\n")
            await anyio.sleep(0.5)  # longer than the pause after which a step is kept
            assert snapshots(place) == [("turn", False)]
            await place.end_turn()
            tasks.cancel_scope.cancel()
        assert snapshots(place) == [("turn", False), ("turn", True)]

    run_on(backend, main)


async def test_call_that_changes_files_elsewhere_costs_nothing(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.begin_turn()
    for path in (tmp_path / "plans" / "plan.md", tmp_path / "work" / ".." / "plan.md"):
        await place.snapshots.rounds.before_effect(await write_call(place, path))
    assert objects(place) == 0
    (tmp_path / "link").symlink_to(place.folder)
    await place.snapshots.rounds.before_effect(await write_call(place, tmp_path / "link" / "a"))
    assert snapshots(place) == [("turn", False)]


async def write_call(place: KeptWorkspace, path: Path) -> ToolCall:
    tool = WriteTool()
    arguments = {"file_path": str(path), "content": "x"}
    return await ToolCall.of("1", tool, tool.input_model.model_validate(arguments), arguments, context_in(place.folder))


async def test_files_in_added_folders_are_restored(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    place.roots = (place.folder, other)
    await place.turn(lambda: (place.write("a", "x\n"), (other / "b").write_text("y\n")))
    files = place.snapshots.turn_files
    await place.undo()

    assert kinds(files) == {"a": "added", f"{other}/b": "added"}
    assert place.state() == {}
    assert list(other.iterdir()) == []


async def test_wider_added_folder_leaves_the_main_one_its_own(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    wide = tmp_path / "wide"
    place.folder, beside = wide / "work", wide / "beside.txt"
    place.folder.mkdir(parents=True)
    place.roots = (place.folder,)
    await place.turn(lambda: place.write("a", "1\n"))
    place.roots = (place.folder, wide)
    await place.turn(lambda: (place.write("a", "2\n"), beside.write_text("y\n")))
    files = place.snapshots.turn_files
    await place.undo()

    assert kinds(files) == {"a": "modified", f"{beside}": "added"}
    assert place.read("a") == "1\n"
    assert not beside.exists()
    plan = await place.undo()
    assert (kinds(plan.files), list(plan.notes)) == ({"a": "deleted"}, [])
    assert place.state() == {}


async def test_too_wide_folder_leaves_undo_to_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = KeptWorkspace(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    place.roots = (place.folder, tmp_path, other)
    await place.turn(lambda: (place.write("a", "x\n"), (other / "b").write_text("y\n")))
    await place.undo()

    assert place.warnings == [f"/undo covers edits alone in one of the folders: {tmp_path} is your whole home folder"]
    assert place.state() == {}
    assert list(other.iterdir()) == []


async def test_added_view_of_the_kernel_is_not_walked_through(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.roots = (place.folder, Path("/proc/self"))
    await place.turn(lambda: place.write("a", "x\n"))
    files = place.snapshots.turn_files

    assert kinds(files) == {"a": "added"}
    (warning,) = place.warnings
    assert warning.endswith("/proc/self is a view of the system's own state")


async def test_unchanged_former_folder_is_not_mentioned(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    place.roots = (place.folder, other)
    await place.turn(lambda: place.write("a", "x\n"))
    place.roots = (place.folder,)

    assert list((await place.undo()).notes) == []


async def test_changes_in_a_former_folder_stay_and_are_reported(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    place.roots = (place.folder, other)
    await place.turn(lambda: (place.write("a", "x\n"), (other / "b").write_text("y\n")))
    place.roots = (place.folder,)
    plan = await place.undo()

    assert plan.notes == [f"what changed in {other} stays, since it is not part of this workspace"]
    assert (other / "b").exists()


async def test_store_is_private_and_survives_gits_gc(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    place.write("secret", "s\n", 0o600)
    await place.turn(lambda: (place.folder / "secret").unlink())
    (store,) = place.home.glob("projects/*/snapshots")
    await anyio.run_process(["git", "--git-dir", str(store), "gc", "--quiet", "--prune=now"])
    await place.undo()

    assert store.stat().st_mode & 0o777 == 0o700
    assert place.read("secret") == "s\n"


LOOSE_IN_17 = [
    text for text in map(str, range(4000)) if sha1(f"blob {len(text)}\0{text}".encode()).hexdigest()[:2] == "17"
]
"""Contents that git keeps in the folder 17, the only one into which it looks for how much is loose."""


@pytest.mark.parametrize("joins_packs", [True, False])
async def test_tidying_packs_loose_objects_and_keeps_all(tmp_path: Path, joins_packs: bool) -> None:
    place = KeptWorkspace(tmp_path)
    await place.turn(lambda: [place.write(text, text) for text in LOOSE_IN_17])
    before = objects(place)
    await place.snapshots.workspace.tidy(loose=1, joins_packs=joins_packs)
    after = objects(place)
    await place.undo()

    assert before > len(LOOSE_IN_17) > 1
    assert after < len(LOOSE_IN_17)
    assert place.state() == {}


async def test_loose_objects_of_earlier_sessions_are_packed(tmp_path: Path) -> None:
    place = KeptWorkspace(tmp_path)
    await place.turn(lambda: [place.write(text, text) for text in LOOSE_IN_17])
    later = KeptWorkspace(tmp_path, session="session-2")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(later.snapshots.rounds.serve)
        await later.begin_turn()
        await until(lambda: objects(later) < len(LOOSE_IN_17))
        tasks.cancel_scope.cancel()
    await place.undo()

    assert place.state() == {}


async def test_first_snapshot_gives_way_until_a_call_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = KeptWorkspace(tmp_path)
    workspace = place.snapshots.workspace
    repository = workspace.store(place.folder).repository
    gave_way: dict[str, bool] = {}
    begins, may_go_on = anyio.Event(), anyio.Event()
    run = OwnRepository.run

    async def noted(self: OwnRepository, *args: str, **options: Any) -> bytes:
        gave_way.setdefault(args[0], self.gives_way)
        if args[0] == "ls-files" and not begins.is_set():
            begins.set()
            await may_go_on.wait()
        return await run(self, *args, **options)

    async def take_beside() -> None:
        async with workspace.lock:
            await workspace.take_beside()

    monkeypatch.setattr(OwnRepository, "run", noted)
    place.write("a", "1\n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take_beside)
        await begins.wait()
        tasks.start_soon(place.snapshots.rounds.before_effect, call_in(place.folder))
        await anyio.wait_all_tasks_blocked()
        may_go_on.set()

    assert gave_way == {"ls-files": True, "diff-files": False, "update-index": False, "write-tree": False}
    assert not repository.gives_way
