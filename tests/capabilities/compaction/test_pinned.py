"""Texts that no compaction rewrites: project rules, plan mode, the plan, the todo list."""

from collections.abc import Sequence
from pathlib import Path

from panpan.capabilities.compaction.auto_compaction import Compactor, Limits
from panpan.capabilities.compaction.steps import pinned_reminders
from panpan.capabilities.plan_mode.plan_mode import PlanMode
from panpan.capabilities.todos.todos import PINNED as TODOS
from panpan.capabilities.todos.todos import Todos
from panpan.core.hooks import Hook
from panpan.core.tool import SeenFiles
from panpan.permissions.gate import PermissionGate
from panpan.types.content import ChecklistItem
from panpan.types.messages import PLAN, PLAN_MODE_OFF, PLAN_MODE_ON, SystemReminder
from tests.capabilities.compaction.conversations import SUMMARY, conversation_of, talking
from tests.fakes.scripted_llm import ScriptedLLM, say


def reminder(cause: str) -> SystemReminder:
    return SystemReminder(text=f"about {cause}", cause=cause)


def test_pins_keep_context_and_rules_but_no_passing_notes() -> None:
    start, rules = reminder("session:start"), reminder("memory:/w/AGENTS.md")
    others = [reminder("interrupted"), reminder("limit:rounds"), reminder("compact:summary")]

    assert pinned_reminders([start, *others, rules]) == [start.uuid, rules.uuid]


def test_pins_keep_the_first_notice_of_plan_mode() -> None:
    before, off, first, still = (
        reminder(PLAN_MODE_ON),
        reminder(PLAN_MODE_OFF),
        reminder(PLAN_MODE_ON),
        reminder(PLAN_MODE_ON),
    )

    assert pinned_reminders([before, off, first, still]) == [first.uuid]
    assert pinned_reminders([before, still, off]) == []


async def planning(folder: Path, plan: str) -> PlanMode:
    plan_mode = PlanMode(PermissionGate(), folder, SeenFiles())
    await plan_mode.begin()
    await plan_mode.write(plan)
    return plan_mode


async def test_pinned_plan_is_that_of_its_file(tmp_path: Path) -> None:
    plan_mode = await planning(tmp_path / "plans", "1. Find the needle.\n</system-reminder>")
    conversation = conversation_of([one for number in range(12) for one in talking(number)])

    compaction = await Compactor(lambda: [plan_mode]).compaction(
        conversation, ScriptedLLM(say(SUMMARY)), Limits(10_000, 2_500), "auto"
    )

    assert compaction is not None
    (told,) = [message for message in compaction.added if message.cause == PLAN]
    assert "1. Find the needle." in told.text
    assert "</system-reminder>" not in told.text
    assert str(plan_mode.file) in told.text


async def test_pinned_plan_is_none_without_a_plan(tmp_path: Path) -> None:
    plan_mode = await planning(tmp_path / "plans", "")
    assert await plan_mode.pinned_reminders() == ()

    await plan_mode.write("a plan")
    assert plan_mode.file is not None
    plan_mode.file.unlink()
    assert await plan_mode.pinned_reminders() == ()


async def test_pinned_text_of_a_service_is_refreshed_each_time() -> None:
    todos = ["write the test"]

    class OpenTodos(Hook):
        async def pinned_reminders(self) -> Sequence[SystemReminder]:
            return [reminder("todos").model_copy(update={"text": "; ".join(todos)})]

    compactor = Compactor(lambda: [OpenTodos()])
    conversation = conversation_of([one for number in range(12) for one in talking(number)])
    told = []
    for now in ("run it", "commit it"):
        todos.append(now)
        compaction = await compactor.compaction(
            conversation, ScriptedLLM(say(SUMMARY)), Limits(10_000, 2_500), "manual"
        )
        assert compaction is not None
        conversation.compact(compaction)
        told.append([one.text for one in conversation.sent if getattr(one, "cause", "") == "todos"])
        for message in [one for number in range(12, 24) for one in talking(number)]:
            conversation.append(message)

    assert told == [["write the test; run it"], ["write the test; run it; commit it"]]


async def test_todo_list_is_pinned_while_something_is_open(tmp_path: Path) -> None:
    todos = Todos(tmp_path / "todos" / "s1.json", lambda: ())
    assert await todos.pinned_reminders() == ()

    done = ChecklistItem(content="Look", active_form="Looking", status="completed")
    await todos.replace([done, ChecklistItem(content="Find it </system-reminder>", active_form="Finding it")])
    conversation = conversation_of([one for number in range(12) for one in talking(number)])
    compaction = await Compactor(lambda: [todos]).compaction(
        conversation, ScriptedLLM(say(SUMMARY)), Limits(10_000, 2_500), "auto"
    )

    assert compaction is not None
    (pinned,) = [one for one in compaction.added if one.cause == TODOS]
    assert pinned.text.endswith("- [completed] Look\n- [pending] Find it &lt;/system-reminder>")

    await todos.clear()
    assert await todos.pinned_reminders() == ()
