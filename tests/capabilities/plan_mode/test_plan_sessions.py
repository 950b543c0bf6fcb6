"""Plan mode belongs to the session: what the model is offered and told, what a resumed one goes on with."""

import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.capabilities.plan_mode.plan_mode import PlanMode
from panpan.capabilities.snapshots.capability import SnapshotsCapability
from panpan.core.tool import SeenFiles
from panpan.permissions.gate import PermissionGate
from panpan.session.capability import concurrently
from panpan.session.session import Session
from panpan.types.content import PlanDisplay
from panpan.types.events import Event
from panpan.types.messages import PLAN_MODE_OFF, PLAN_MODE_ON, AssistantMessage, SystemReminder, ToolResultMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion, PlanApproved, PlanRejected
from tests.fakes.planning import ScriptedJudge
from tests.fakes.processes import UnreachableTree, sleeping
from tests.fakes.scripted_llm import ScriptedLLM
from tests.fakes.session import session_in
from tests.system.backends import until

PLAN = "Let parse take a list of paths; then run the tests of parse."
ENTER = 'tool_use = [{ name = "EnterPlanMode" }]'
EXIT = f'tool_use = [{{ name = "ExitPlanMode", input = {{ plan = "{PLAN}" }} }}]'
WRITE = 'tool_use = [{ name = "Write", input = { file_path = "a.txt", content = "a" } }]'
DONE = 'text = "done"'


async def allow(question: PermissionQuestion) -> PermissionAnswer:
    return PermissionAnswer(is_allowed=True)


@dataclass
class Place:
    """A workspace and a home, and the warnings of the sessions that were opened there."""

    root: Path
    env: dict[str, str]
    warnings: list[str] = field(default_factory=list)

    def open(self, *replies: str, mode: str | None = None, **wishes: Any) -> AbstractAsyncContextManager[Session]:
        tape = self.root / "tape.toml"
        tape.write_text("version = 1\n" + "\n".join(f"[[reply]]\n{reply}" for reply in replies or (DONE,)))
        overrides: Mapping[str, object] = {"model": f"cassette:{tape}"} | ({"permission.mode": mode} if mode else {})
        self.warnings.clear()
        return open_session(
            self.root / "workspace", overrides=overrides, env=self.env, warn=self.warnings.append, **wishes
        )

    @property
    def home(self) -> Path:
        return Path(self.env["PANPAN_HOME"])

    @property
    def plans(self) -> list[Path]:
        return sorted((self.home / "plans").glob("*"))

    def log(self) -> Path:
        (log,) = self.home.rglob("sessions/*.jsonl")
        return log

    def records(self, subtype: str) -> list[dict[str, Any]]:
        records = [json.loads(line) for line in self.log().read_text().splitlines()]
        return [record for record in records if record.get("subtype") == subtype]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path, {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")})


async def turn(session: Session) -> list[Event]:
    async with aclosing(session.submit("go")) as events:
        return [event async for event in events]


def told(session: Session) -> list[str]:
    causes = [message.cause for message in session.conversation.messages if isinstance(message, SystemReminder)]
    return [cause for cause in causes if cause in (PLAN_MODE_ON, PLAN_MODE_OFF)]


def results(events: list[Event]) -> list[ToolResultMessage]:
    return [event for event in events if isinstance(event, ToolResultMessage)]


def offered(session: Session) -> set[str]:
    return {"EnterPlanMode", "ExitPlanMode"} & {tool.name for tool in session.conversation.tools}


async def test_model_enters_and_the_users_yes_ends_plan_mode(place: Place) -> None:
    user = ScriptedJudge(PlanApproved("acceptEdits"))

    async with place.open(ENTER, WRITE, EXIT, WRITE, DONE, ask=allow, ask_plan=user) as session:
        entered, refused, approved, written = results(await turn(session))
        assert session.permission_mode == "acceptEdits"
        assert told(session) == [PLAN_MODE_ON, PLAN_MODE_OFF]

    assert [one.is_error for one in (entered, refused, approved, written)] == [False, True, False, False]
    assert isinstance(approved.display, PlanDisplay)
    assert [proposal.text for proposal in user.proposals] == [PLAN]
    assert (place.root / "workspace" / "a.txt").read_text() == "a"
    assert [path.read_text() for path in place.plans] == [f"{PLAN}\n"]
    assert [one["permissionMode"] for one in place.records("permission_mode")] == ["plan", "acceptEdits"]


async def test_notice_is_no_part_of_the_system_prompt(place: Place) -> None:
    async with place.open(DONE, DONE, DONE, ask=allow, ask_plan=ScriptedJudge()) as session:
        await turn(session)
        before = session.conversation.system, session.conversation.tools
        session.set_permission_mode("plan")
        await turn(session)
        await turn(session)

        assert (session.conversation.system, session.conversation.tools) == before
        assert told(session) == [PLAN_MODE_ON]
        (notice,) = [each for each in session.conversation.messages if getattr(each, "cause", "") == PLAN_MODE_ON]
        assert str(place.plans[0]) in str(notice)


async def test_resumed_session_keeps_its_mode_and_plan(place: Place) -> None:
    user = ScriptedJudge(PlanRejected("smaller"), PlanApproved("default"))
    async with place.open(EXIT, DONE, mode="plan", is_interactive=True, ask=allow, ask_plan=user) as session:
        session.set_permission_mode("default")
        session.set_permission_mode("plan")
        await turn(session)

    leave = 'tool_use = [{ name = "ExitPlanMode" }]'
    async with place.open(leave, DONE, continue_latest=True, is_interactive=True, ask=allow, ask_plan=user) as session:
        assert session.permission_mode == "plan"
        await turn(session)
        assert (session.permission_mode, told(session)) == ("default", [PLAN_MODE_ON, PLAN_MODE_OFF])

    assert [proposal.text for proposal in user.proposals] == [PLAN, PLAN]
    assert len(place.plans) == 1


async def test_resumed_session_plans_in_a_new_file_after_approval(place: Place) -> None:
    user = ScriptedJudge(PlanApproved("default"))
    async with place.open(EXIT, DONE, mode="plan", is_interactive=True, ask=allow, ask_plan=user) as session:
        await turn(session)

    async with place.open(ENTER, DONE, continue_latest=True, is_interactive=True, ask=allow, ask_plan=user) as session:
        await turn(session)

    assert sorted(path.read_text() for path in place.plans) == ["", f"{PLAN}\n"]


@pytest.mark.parametrize("name", ["../settings.toml", "/etc/passwd", "a/../../settings.toml"])
async def test_forged_log_opens_no_other_file(place: Place, name: str) -> None:
    place.home.mkdir()
    settings = place.home / "settings.toml"
    settings.write_text("# mine\n")
    async with place.open(mode="plan", ask=allow, ask_plan=ScriptedJudge()) as session:
        await turn(session)
    lines = [json.loads(line) for line in place.log().read_text().splitlines()]
    for record in lines:
        if record.get("subtype") == "plan_file":
            record["planFile"] = name
    place.log().write_text("".join(json.dumps(record) + "\n" for record in lines))

    write = f'tool_use = [{{ name = "Write", input = {{ file_path = "{settings}", content = "x" }} }}]'
    async with place.open(
        write, DONE, mode="plan", continue_latest=True, ask=allow, ask_plan=ScriptedJudge()
    ) as session:
        (result,) = results(await turn(session))

    assert result.is_error
    assert settings.read_text() == "# mine\n"


async def test_plan_ends_the_turn_without_a_user(place: Place) -> None:
    async with place.open(EXIT, DONE, mode="plan", auto_approve=True) as session:
        assert offered(session) == {"ExitPlanMode"}
        events = await turn(session)
        assert session.permission_mode == "plan"

    (result,) = results(events)
    assert result.display == PlanDisplay(text=PLAN, summary="the result of this run", is_result=True)
    assert len([event for event in events if isinstance(event, AssistantMessage)]) == 1


async def test_turn_after_a_delivered_plan_is_a_usual_one(place: Place) -> None:
    async with place.open(EXIT, DONE, mode="plan") as session:
        await turn(session)
        events = await turn(session)

    assert [event.text for event in events if isinstance(event, AssistantMessage)] == ["done"]


async def test_planning_is_not_offered_without_a_user(place: Place) -> None:
    async with place.open() as session:
        assert offered(session) == set()


async def test_offered_planning_cannot_lock_a_run_in_without_a_user(place: Place) -> None:
    async with place.open(ask=allow, ask_plan=ScriptedJudge()) as session:
        await turn(session)

    async with place.open(ENTER, DONE, continue_latest=True) as session:
        (result,) = results(await turn(session))
        assert (result.is_error, session.permission_mode) == (True, "default")

    assert place.plans == []


async def test_planning_tools_are_both_offered_to_a_user(place: Place) -> None:
    async with place.open(ask=allow, ask_plan=ScriptedJudge()) as session:
        assert offered(session) == {"EnterPlanMode", "ExitPlanMode"}


async def test_sessions_do_not_share_a_plan_mode(place: Place) -> None:
    async with (
        place.open(ENTER, DONE, ask=allow, ask_plan=ScriptedJudge()) as first,
        place.open(ask=allow, ask_plan=ScriptedJudge()) as second,
    ):
        assert first.capabilities[PlanMode] is not second.capabilities[PlanMode]
        first.set_permission_mode("plan")
        assert (first.permission_mode, second.permission_mode) == ("plan", "default")


BEATS = "while :; do echo x >> beats; sleep 0.01; done >/dev/null 2>&1 & sleep 0.1"
BEATING = f'tool_use = [{{ name = "Bash", input = {{ command = "{BEATS}" }} }}]'


@pytest.mark.parametrize("by_model", [True, False])
async def test_earlier_job_changes_nothing_in_plan_mode(place: Place, by_model: bool) -> None:
    beats = place.root / "workspace" / "beats"

    async def beat() -> None:
        before = beats.stat().st_size
        await until(lambda: beats.stat().st_size > before)

    replies = (BEATING, DONE, ENTER, DONE) if by_model else (BEATING, DONE, DONE)
    async with place.open(*replies, mode="bypassPermissions", ask=allow, ask_plan=ScriptedJudge()) as session:
        await turn(session)
        await beat()
        if not by_model:
            session.set_permission_mode("plan")
        events = await turn(session)
        size = beats.stat().st_size
        reminder = next(event for event in events if isinstance(event, SystemReminder) and event.cause == PLAN_MODE_ON)
        assert "What still runs of your commands is stopped until then: " in reminder.text
        assert any("stopped until plan mode ends: " in warning for warning in place.warnings)
        assert beats.stat().st_size == size
        session.set_permission_mode("default")
        await beat()


async def test_unstoppable_process_is_reported_as_the_session_goes_on(tmp_path: Path) -> None:
    tree = UnreachableTree()
    warnings: list[str] = []
    gate = PermissionGate()
    plan_mode = PlanMode(gate, tmp_path / "plans", SeenFiles(), warnings.append, holds=(tree,))
    gate.subscribe(plan_mode.mode_changed)
    async with session_in(tmp_path, ScriptedLLM(), gate=gate) as session, concurrently(plan_mode.keep_held):
        process = sleeping(tree)
        try:
            await until(lambda: [one.name for one in tree.members()] == ["sleep"])
            session.set_permission_mode("plan")
            assert warnings == []
            await until(lambda: warnings != [])
        finally:
            process.kill()
            process.wait()
    assert f"may go on changing files, although plan mode is on: sleep ({process.pid})" in warnings[0]


@pytest.mark.parametrize(
    ("tools", "wishes", "is_early"),
    [
        ("", {}, True),
        ("", {"mode": "plan"}, False),
        ("", {"mode": "plan", "is_interactive": True}, True),
        ('"*" = false\nRead = true\nGrep = true', {}, False),
    ],
)
async def test_snapshots_start_early_only_if_files_can_change(
    place: Place, tools: str, wishes: dict[str, Any], is_early: bool
) -> None:
    place.home.mkdir()
    (place.home / "settings.toml").write_text(f"[tools.enabled]\n{tools}\n")
    async with place.open(**wishes) as session:
        assert session[SnapshotsCapability].can_change is is_early
