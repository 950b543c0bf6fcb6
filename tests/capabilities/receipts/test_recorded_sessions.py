"""Every command of a session that ends leaves a receipt, however it runs and ends."""

import shutil
from pathlib import Path

import pytest

from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.receipts.session_receipts import SessionReceipts
from panpan.session.capability import UserShell
from panpan.types.events import Event, ToolProgress
from panpan.types.messages import Compaction
from tests.capabilities.plan_mode.test_plan_sessions import DONE, Place, allow
from tests.capabilities.receipts.receipt_fixtures import bash, call, place_in, receipts_of, submit

WAIT = "echo on; while [ ! -e go ]; do sleep 0.01; done"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def lines(place: Place) -> list[str]:
    return [record["receipt"]["argv"][-1] for record in place.records("receipt")]


async def test_command_leaves_a_receipt_of_its_turn(place: Place) -> None:
    async with place.open(bash("echo hi >made; exit 3"), DONE, ask=allow) as session:
        await submit(session)
        (one,) = await receipts_of(session)

    assert one.receipt.argv == ("bash", "-c", "echo hi >made; exit 3")
    assert (one.receipt.exit_code, one.receipt.timed_out, one.receipt.cwd) == (3, False, ".")
    assert one.receipt.box != "off"
    assert one.receipt.network is False
    assert (one.turn, one.agent_id, one.is_of_user) == (1, "", False)
    assert one.tool_use_id
    assert lines(place) == ["echo hi >made; exit 3"]


async def test_command_that_looks_is_recorded_as_such(place: Place) -> None:
    async with place.open(bash("ls"), DONE) as session:
        await submit(session)
        (one,) = await receipts_of(session)

    assert one.receipt.kind == "look"


async def test_timed_out_command_says_so(place: Place) -> None:
    async with place.open(bash("sleep 60", timeout=100), DONE, ask=allow) as session:
        configured = session[BackgroundTasks].continues_after_timeout
        await submit(session)
        if configured:
            await session[BackgroundTasks].stop(session[BackgroundTasks].tasks[0].id)
        (one,) = await receipts_of(session)

    assert configured or one.receipt.timed_out
    assert not one.receipt.is_success


async def test_interrupted_command_has_no_exit_code(place: Place) -> None:
    async with place.open(bash(WAIT), DONE, ask=allow) as session:
        await submit(session, lambda event: isinstance(event, ToolProgress) and session.interrupt())
        (one,) = await receipts_of(session)

    assert one.receipt.exit_code is None
    assert not one.receipt.is_success


async def test_command_that_cannot_start_leaves_none(place: Place) -> None:
    gone = place.root / "workspace" / "gone"
    gone.mkdir()
    async with place.open(bash("cd gone"), bash("rmdir ../gone"), bash("touch x"), DONE, ask=allow) as session:
        await submit(session)
        said = [one.receipt.argv[-1] for one in await receipts_of(session)]

    assert said == ["cd gone", "rmdir ../gone"]


async def test_background_command_has_its_receipt_when_it_ends(place: Place) -> None:
    async with place.open(bash(f"{WAIT}; exit 4", run_in_background=True), DONE, DONE, DONE, ask=allow) as session:
        await submit(session)
        assert await receipts_of(session) == []
        await submit(session)
        (place.root / "workspace" / "go").touch()
        await session[BackgroundTasks].wait(session[BackgroundTasks].tasks[0].id, 20)
        (one,) = await receipts_of(session)

    assert (one.receipt.exit_code, one.turn) == (4, 2)
    assert one.receipt.output_bytes == len("on\n")


async def test_moved_command_goes_on_with_its_receipt(place: Place) -> None:
    async with place.open(bash(f"{WAIT}; echo off"), DONE, DONE, ask=allow) as session:
        await submit(session, lambda event: isinstance(event, ToolProgress) and session[BackgroundTasks].move())
        assert await receipts_of(session) == []
        (place.root / "workspace" / "go").touch()
        await session[BackgroundTasks].wait(session[BackgroundTasks].tasks[0].id, 20)
        (one,) = await receipts_of(session)

    assert one.receipt.exit_code == 0
    assert one.receipt.output_bytes == len("on\noff\n")


async def test_task_stopped_with_the_session_has_a_receipt(place: Place) -> None:
    async with place.open(bash(WAIT, run_in_background=True), DONE, ask=allow) as session:
        await submit(session)

    (record,) = place.records("receipt")
    assert record["receipt"]["exit_code"] is None


async def test_command_of_the_user_is_told_as_theirs(place: Place) -> None:
    async with place.open(DONE) as session:
        await submit(session)
        await session[UserShell].run("echo mine >mine", lambda _: None)  # type: ignore[type-abstract]
        (one,) = await receipts_of(session)
        written = session[SessionReceipts].files_written_here()

    assert (one.is_of_user, one.receipt.box, one.receipt.network) == (True, "off", True)
    assert "mine" not in written


async def test_receipts_are_there_again_on_resuming(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, bash("touch b"), DONE, ask=allow) as session:
        await submit(session)
        await submit(session)
        before = await receipts_of(session)
    async with place.open(DONE, DONE, DONE, DONE, DONE, continue_latest=True, ask=allow) as again:
        found = await receipts_of(again)
        assert [one.receipt.argv[-1] for one in found] == ["touch a", "touch b"]
        await submit(again)
        assert again[SessionReceipts].turn == 3

    assert [one.receipt for one in found] == [one.receipt for one in before]
    assert [one.turn for one in found] == [1, 2]


async def test_receipts_survive_rewind_and_fork(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, bash("touch b"), DONE, ask=allow) as session:
        await submit(session)
        await submit(session)
        await session.rewind(session.conversation.messages[0].uuid)
        assert len(await receipts_of(session)) == 2
    async with place.open(DONE, DONE, resume=session.info.id, fork=True, is_interactive=True) as copy:
        assert [one.receipt.argv[-1] for one in await receipts_of(copy)] == ["touch a", "touch b"]


async def test_receipts_survive_a_compaction(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, bash("touch b"), DONE, ask=allow) as session:
        await submit(session)
        await submit(session)
        last = session.conversation.messages[-1].uuid
        compaction = Compaction(trigger="manual", up_to=last, tokens_before=9, tokens_after=1)
        session.agent.transcript.recorder.compact(compaction)
        assert len(await receipts_of(session)) == 2
    async with place.open(DONE, DONE, continue_latest=True) as again:
        assert len(await receipts_of(again)) == 2


async def test_receipts_of_another_folder_keep_theirs(place: Place) -> None:
    async with place.open(bash("touch a"), DONE, ask=allow) as session:
        await submit(session)
    (place.root / "workspace").rename(place.root / "moved")
    (place.root / "workspace").mkdir()
    log = place.log()
    log.write_text(log.read_text().replace(str(place.root / "workspace"), str(place.root / "moved")))
    async with place.open(DONE, DONE, resume=session.info.id) as again:
        (one,) = await receipts_of(again)

    assert one.root == place.root / "moved"


async def test_crash_in_mid_command_leaves_no_receipt(place: Place, tmp_path: Path) -> None:
    copy = tmp_path / "copy"

    def crash(event: Event) -> None:
        if isinstance(event, ToolProgress) and not copy.exists():
            shutil.copytree(place.home, copy)  # the disk as a kill -9 would leave it
            (place.root / "workspace" / "go").touch()

    async with place.open(bash("touch a"), bash(WAIT), DONE, ask=allow) as session:
        await submit(session, crash)
    place.env["PANPAN_HOME"] = str(copy)
    async with place.open(DONE, DONE, DONE, resume=session.info.id, ask=allow) as again:
        assert [one.receipt.argv[-1] for one in await receipts_of(again)] == ["touch a"]


async def test_command_that_outlived_panpan_says_what_is_known(place: Place) -> None:
    place.home.mkdir()
    (place.home / "settings.toml").write_text('[background]\nat_exit = "keep"\n')
    async with place.open(bash(f"{WAIT}; exit 5", run_in_background=True), DONE, ask=allow) as session:
        await submit(session)
    assert place.records("receipt") == []

    async with place.open(DONE, DONE, resume=session.info.id, ask=allow) as again:
        assert await receipts_of(again) == []
        (place.root / "workspace" / "go").touch()
        await again[BackgroundTasks].wait(again[BackgroundTasks].tasks[0].id, 20)
        (one,) = await receipts_of(again)
    async with place.open(DONE, DONE, resume=session.info.id, ask=allow) as third:
        assert [each.receipt for each in await receipts_of(third)] == [one.receipt]

    assert one.receipt.exit_code == 5
    assert one.receipt.inputs_are == "unknown"
    assert one.receipt.output_bytes == len("on\n")
    assert one.receipt.began_at < one.receipt.ended_at


async def test_disabled_receipts_record_nothing(place: Place) -> None:
    place.home.mkdir()
    (place.home / "settings.toml").write_text("[receipts]\nenabled = false\n")
    async with place.open(bash("touch a"), DONE, ask=allow) as session:
        await submit(session)
        assert session.find(SessionReceipts) is None

    assert place.records("receipt") == []


async def test_written_files_are_those_of_tools_and_of_commands(place: Place) -> None:
    replies = call("Write", file_path="made/by_tool.txt", content="x"), bash("touch a"), DONE, DONE
    async with place.open(*replies, ask=allow) as session:
        await submit(session)
        await receipts_of(session)
        written = session[SessionReceipts].files_written_here()
    async with place.open(DONE, DONE, DONE, continue_latest=True) as again:
        await receipts_of(again)
        assert "made/by_tool.txt" in again[SessionReceipts].files_written_here()

    assert "made/by_tool.txt" in written
