"""Plan mode in a session: which file, what the model is told and when, and in which modes it may be left."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.plan_mode.plan_mode import TURNS_BETWEEN_NOTICES, PlanMode
from panpan.capabilities.plan_mode.plan_mode_tools import ExitPlanModeTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.core.tool import SeenFiles
from panpan.errors import ToolError
from panpan.permissions.gate import PermissionGate
from panpan.session.log.record_kinds import PlanFileRecord
from panpan.system.processes.process_table import ProcessTree
from panpan.types.messages import PLAN_MODE_OFF, PLAN_MODE_ON, SystemReminder, UserMessage
from panpan.types.permission import PermissionMode
from tests.fakes.planning import FakePlanning
from tests.fakes.processes import UnreachableTree, sleeping
from tests.system.backends import until


class Place:
    """A session's plan mode, and its conversation."""

    def __init__(
        self,
        root: Path,
        mode: PermissionMode = "default",
        *,
        has_exit: bool = True,
        holds: Sequence[ProcessTree] = (),
    ) -> None:
        self.gate = PermissionGate(mode=mode)
        self.folder = root / "plans"
        self.seen_files = SeenFiles()
        self.warnings: list[str] = []
        self.notes: list[dict[str, Any]] = []
        self.plan_mode = PlanMode(
            self.gate,
            self.folder,
            self.seen_files,
            self.warnings.append,
            note=lambda record: self.notes.append(dict(record)),
            holds=holds,
        )
        self.gate.subscribe(self.plan_mode.mode_changed)
        tools = [ExitPlanModeTool(FakePlanning(), None).definition] if has_exit else []
        self.conversation = Conversation(tools=tools)

    async def request(self) -> Sequence[str]:
        """Return the causes of what the model is told before a request."""
        return [reminder.cause for reminder in await self.told()]

    async def told(self) -> Sequence[SystemReminder]:
        additions = await self.plan_mode.before_request(Round(1, 10, self.conversation))
        for addition in additions:
            self.conversation.append(addition)
        return [addition for addition in additions if isinstance(addition, SystemReminder)]

    async def turn(self, rounds: int = 1) -> Sequence[str]:
        self.conversation.append(UserMessage.of("go"))
        await self.plan_mode.turn_started(self.conversation)
        return [cause for _ in range(rounds) for cause in await self.request()]

    @property
    def plans(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_default_mode_tells_nothing_and_makes_no_file(place: Place) -> None:
    assert [await place.turn(3), await place.turn()] == [[], []]
    assert place.plans == []


async def test_plan_mode_notice_comes_once_at_start_and_end(place: Place) -> None:
    place.gate.mode = "plan"
    (notice,) = await place.told()
    (path,) = place.plans

    assert notice.cause == PLAN_MODE_ON
    assert str(path) in notice.text
    assert "ExitPlanMode" in notice.text
    assert await place.turn(3) == []

    place.gate.mode = "acceptEdits"
    (over,) = await place.told()
    assert (over.cause, "acceptEdits" in over.text) == (PLAN_MODE_OFF, True)
    assert await place.turn() == []


async def test_modes_passed_through_are_not_told(place: Place) -> None:
    for mode in ("acceptEdits", "plan", "default"):
        place.gate.mode = mode

    assert await place.turn() == []
    assert place.plans == []


async def test_plan_mode_reminder_returns_after_many_turns(place: Place) -> None:
    place.gate.mode = "plan"

    told = [len(await place.turn(2)) for _ in range(2 * TURNS_BETWEEN_NOTICES + 3)]

    assert [number for number, count in enumerate(told) if count] == [
        0,
        TURNS_BETWEEN_NOTICES + 1,
        2 * TURNS_BETWEEN_NOTICES + 2,
    ]
    assert set(told) == {0, 1}


async def test_model_that_cannot_leave_is_not_told_how(tmp_path: Path) -> None:
    place = Place(tmp_path, "plan", has_exit=False)

    (notice,) = await place.told()

    assert "ExitPlanMode" not in notice.text
    assert "describe in your answer" in notice.text


async def test_resumed_session_tells_the_model_its_mode(tmp_path: Path) -> None:
    heard = SystemReminder(text="…", cause=PLAN_MODE_ON)
    in_plan_mode, left = Place(tmp_path / "a", "plan"), Place(tmp_path / "b", "default")
    for place in (in_plan_mode, left):
        place.conversation.append(heard)

    assert [await in_plan_mode.turn(), await left.turn()] == [[], [PLAN_MODE_OFF]]


async def test_plan_of_a_resumed_session_must_be_read_unless_empty(
    tmp_path: Path,
) -> None:
    empty = await Place(tmp_path).plan_mode.begin()
    resumed = Place(tmp_path, "plan")
    resumed.plan_mode.restore(empty.name, is_approved=False)
    await resumed.plan_mode.write("the plan")

    again = Place(tmp_path, "plan")
    again.plan_mode.restore(empty.name, is_approved=False)
    with pytest.raises(ToolError, match="not read"):
        await again.plan_mode.write("another")
    await again.plan_mode.read()
    await again.plan_mode.write("another")

    assert empty.read_text() == "another\n"


async def test_plan_file_is_known_to_the_model_for_writing(place: Place) -> None:
    path = await place.plan_mode.begin()

    assert (place.gate.mode, place.gate.plan_file) == ("plan", path)
    assert place.seen_files.digest(path) is not None
    assert place.notes == [PlanFileRecord(uuid=place.notes[0]["uuid"], plan_file=path.name).as_json()]


async def test_plan_file_is_reused_until_the_plan_is_approved(place: Place) -> None:
    first = await place.plan_mode.begin()
    place.gate.mode = "default"
    assert await place.plan_mode.begin() == first

    await place.plan_mode.write("the plan")
    place.plan_mode.approve("default")
    assert place.gate.plan_file == first, "the model may read it while it works"
    second = await place.plan_mode.begin()

    assert (second != first, first.read_text(), second.read_text()) == (True, "the plan\n", "")
    assert [(note["planFile"], note["isApproved"]) for note in place.notes] == [
        (first.name, False),
        (first.name, True),
        (second.name, False),
    ]


@pytest.mark.parametrize(
    ("before", "offered"),
    [
        ("default", ("default", "acceptEdits")),
        ("acceptEdits", ("default", "acceptEdits")),
        ("dontAsk", ("default", "acceptEdits", "dontAsk")),
        ("bypassPermissions", ("default", "acceptEdits", "bypassPermissions")),
    ],
)
async def test_approval_offers_the_earlier_mode_but_none_looser(
    tmp_path: Path, before: PermissionMode, offered: Sequence[PermissionMode]
) -> None:
    place = Place(tmp_path, before)
    await place.plan_mode.begin()

    assert place.plan_mode.next_modes == offered
    for mode in ("plan", *({"dontAsk", "bypassPermissions"} - set(offered))):
        with pytest.raises(ToolError):
            place.plan_mode.approve(mode)
    assert place.gate.mode == "plan"


async def test_session_begun_in_plan_mode_offers_the_usual_modes(tmp_path: Path) -> None:
    assert Place(tmp_path, "plan").plan_mode.next_modes == ("default", "acceptEdits")


async def test_plans_are_approved_only_in_plan_mode(place: Place) -> None:
    with pytest.raises(ToolError):
        place.plan_mode.approve("acceptEdits")

    assert place.gate.mode == "default"


async def test_plan_mode_holds_without_a_plan_file(place: Place) -> None:
    place.folder.write_text("in the way")
    with pytest.raises(ToolError, match="plan file cannot be made"):
        await place.plan_mode.begin()

    (notice,) = await place.told()

    assert (place.gate.mode, len(place.warnings)) == ("plan", 1)
    assert "plan file" not in notice.text


async def test_turn_ends_early_only_with_a_delivered_plan(place: Place) -> None:
    round_ = Round(1, 10, place.conversation)
    place.gate.mode = "plan"
    await place.turn()
    before = place.plan_mode.ends_turn(round_)
    place.plan_mode.deliver()
    after = place.plan_mode.ends_turn(round_)
    await place.turn()

    assert (before, after, place.plan_mode.ends_turn(round_)) == (False, True, False)


async def test_running_commands_are_held_until_plan_mode_ends(tmp_path: Path) -> None:
    tree = ProcessTree()
    place = Place(tmp_path, holds=(tree,))
    process = sleeping(tree)

    def state() -> str:
        return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]

    await until(lambda: [one.name for one in tree.members()] == ["sleep"])
    try:
        place.gate.mode = "plan"
        await until(lambda: state() == "T")  # where it has no processor, it stops when it gets one
        (notice,) = await place.told()
        place.gate.mode = "acceptEdits"
        await until(lambda: state() == "S")
    finally:
        process.kill()
        process.wait()

    assert place.warnings == [f"still running, and stopped until plan mode ends: sleep ({process.pid})"]
    assert f"What still runs of your commands is stopped until then: sleep ({process.pid})." in notice.text


async def test_unstoppable_commands_are_reported_without_delay(tmp_path: Path) -> None:
    tree = UnreachableTree()
    place = Place(tmp_path, holds=(tree,))
    process = sleeping(tree)
    try:
        await until(lambda: [one.name for one in tree.members()] == ["sleep"])
        place.gate.mode = "plan"
        before = list(place.warnings)
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(place.plan_mode.keep_held)
            await until(lambda: place.warnings != before)
            task_group.cancel_scope.cancel()
    finally:
        process.kill()
        process.wait()

    text = "could not be stopped and may go on changing files, although plan mode is on"
    assert (before, place.warnings) == ([], [f"{text}: sleep ({process.pid})"])


async def test_plan_mode_without_processes_does_not_mention_them(tmp_path: Path) -> None:
    place = Place(tmp_path, holds=(ProcessTree(),))

    place.gate.mode = "plan"
    (notice,) = await place.told()

    assert place.warnings == []
    assert "still runs" not in notice.text
