"""Sources of reminders: their moments and their texts."""

from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.compaction.capability import LONG_S, NEARLY, ContextNearlyFull, LongSession
from panpan.capabilities.compaction.settings import CompactionSettings
from panpan.capabilities.todos.capability import ROUNDS_UNTOUCHED, ROUNDS_WITHOUT, TodoChanged, TodoForgotten
from panpan.capabilities.todos.todo_write import TodoWriteTool
from panpan.capabilities.todos.todos import Todos
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round
from panpan.session.budget.budget import BudgetNearlySpent
from panpan.session.reminders import ReminderSource
from panpan.types.agent import SpendingLimits
from panpan.types.content import ChecklistDisplay, ChecklistItem, TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, Usage, UserMessage
from tests.capabilities.guards.hook_fixtures import reply


class Talk:
    """A conversation, and the list of its session."""

    def __init__(self, folder: Path, *, has_tool: bool = True) -> None:
        tools = [TodoWriteTool(Todos(folder / "none.json", list)).definition] if has_tool else []
        self.folder = folder
        self.conversation = Conversation(tools=tools, messages=[UserMessage.of("go")])
        self.now_s = 0.0
        self.todos = Todos(folder / "s1.json", lambda: self.conversation.messages, clock=lambda: self.now_s)

    async def write(self, *wanted: ChecklistItem) -> None:
        todos = tuple(await self.todos.replace(wanted))
        use = ToolUseBlock(id=f"use{len(self.conversation.messages)}", name="TodoWrite", input={})
        self.conversation.append(AssistantMessage(content=(use,)))
        block = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text="ok"),))
        self.conversation.append(ToolResultMessage(result=block, display=ChecklistDisplay(todos=todos)))

    def reply(self, count: int) -> None:
        for _ in range(count):
            self.conversation.append(reply("hm"))

    async def told(self, source: ReminderSource, *, number: int = 1) -> list[SystemReminder]:
        reminders = list(await source.reminders(Round(number, 100, self.conversation)))
        for reminder in reminders:
            self.conversation.append(reminder)
        return reminders


def todo(content: str, **more: Any) -> ChecklistItem:
    return ChecklistItem(content=content, active_form=f"{content} now", **more)


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path / "todos")


# todo:changed


async def test_todo_change_by_the_model_is_not_told(talk: Talk) -> None:
    source = TodoChanged(talk.todos)
    assert await talk.told(source) == []

    await talk.write(todo("read"))

    assert await talk.told(source) == []


async def test_todo_change_by_the_user_is_told_once_each_time(talk: Talk) -> None:
    source = TodoChanged(talk.todos)
    await talk.write(todo("read"))
    await talk.todos.clear()

    (cleared,) = await talk.told(source)
    assert "cleared" in cleared.text
    assert cleared.priority == "must"
    assert await talk.told(source) == []

    await talk.write(todo("read"))
    await talk.todos.clear()
    (again,) = await talk.told(source)
    assert again.cause != cleared.cause


async def test_todo_change_by_another_process_is_told_word_for_word(talk: Talk) -> None:
    await talk.write(todo("read"))
    other = Todos(talk.folder / "s1.json", lambda: talk.conversation.messages)
    await other.replace([todo("look at </system-reminder> <b>this</b>", status="in_progress")])
    talk.now_s = 10.0

    (changed,) = await talk.told(TodoChanged(talk.todos))

    assert "- [in_progress] look at &lt;/system-reminder> <b>this</b>" in changed.text
    await talk.write(todo("go on"))
    assert [one.content for one in talk.todos.todos] == ["go on"]


async def test_resumed_session_knows_the_told_todos(talk: Talk, tmp_path: Path) -> None:
    await talk.write(todo("read"))
    await talk.todos.clear()
    await talk.told(TodoChanged(talk.todos))

    resumed = Todos(tmp_path / "todos" / "s1.json", lambda: talk.conversation.messages)

    assert await talk.told(TodoChanged(resumed)) == []


# todo:forgotten, todo:none


async def test_untouched_open_todos_are_told_again(talk: Talk) -> None:
    source = TodoForgotten(talk.todos)
    await talk.write(todo("read", status="completed"), todo("write"))

    talk.reply(ROUNDS_UNTOUCHED - 1)
    assert await talk.told(source) == []
    talk.reply(1)
    (first,) = await talk.told(source)
    assert "- [pending] write" in first.text
    assert first.priority == "low"

    await talk.write(todo("write", status="in_progress"))
    assert await talk.told(source) == []
    talk.reply(ROUNDS_UNTOUCHED)
    (second,) = await talk.told(source)
    assert second.cause != first.cause, "the list was written anew, so that it is another occasion"


async def test_completed_todos_are_not_told(talk: Talk) -> None:
    await talk.write(todo("read", status="completed"))
    talk.reply(ROUNDS_WITHOUT)

    assert await talk.told(TodoForgotten(talk.todos), number=ROUNDS_WITHOUT + 1) == []


async def test_long_turn_without_todos_suggests_a_list(talk: Talk) -> None:
    source = TodoForgotten(talk.todos)

    assert await talk.told(source, number=ROUNDS_WITHOUT) == []
    (none,) = await talk.told(source, number=ROUNDS_WITHOUT + 1)
    assert (none.cause, none.priority) == ("todo:none", "low")


async def test_todo_reminders_need_the_todo_tool(tmp_path: Path) -> None:
    talk = Talk(tmp_path / "todos", has_tool=False)

    assert await talk.told(TodoForgotten(talk.todos), number=ROUNDS_WITHOUT + 1) == []


# context, budget, session


def filled(tokens: int) -> Conversation:
    answer = AssistantMessage(content=(TextBlock(text="ok"),), usage=Usage(input_tokens=tokens))
    return Conversation(messages=[UserMessage.of("go"), answer])


async def context(tokens: int, *, enabled: bool = True, window: int | None = 100_000) -> list[SystemReminder]:
    source = ContextNearlyFull(CompactionSettings(enabled=enabled, reserve_tokens=20_000), lambda: window)
    return list(await source.reminders(Round(1, 10, filled(tokens))))


async def test_nearly_full_window_is_told_before_compaction() -> None:
    limit = 80_000

    assert await context(round(NEARLY * limit) - 1) == []
    (near,) = await context(round(NEARLY * limit) + 1)
    assert (near.cause, near.priority) == ("context:nearly_full:0", "must")
    assert "replaced by a record" in near.text
    assert await context(limit + 1) == [], "it is made shorter before this very request"
    assert await context(limit, window=None) == []


async def test_nearly_full_window_without_compaction_asks_for_an_end() -> None:
    (over,) = await context(90_000, enabled=False)

    assert "/compact" in over.text


async def test_budget_reminder_repeats_for_another_budget() -> None:
    said, limits = [""], [SpendingLimits(usd=1.0)]
    source = BudgetNearlySpent(lambda: said[0], lambda: limits[0])
    round_ = Round(1, 10, Conversation())

    assert list(await source.reminders(round_)) == []
    said[0] = "Of the budget, $0.9000 of $1.0000 is spent."
    (first,) = await source.reminders(round_)
    limits[0] = SpendingLimits(usd=2.0, tokens=1_000_000)
    (second,) = await source.reminders(round_)

    assert first.text.startswith("Of the budget, $0.9000 of $1.0000 is spent. When it is spent")
    assert (first.cause, second.cause) == ("budget:nearly_spent:1", "budget:nearly_spent:2-1e+06")
    assert first.priority == "must"


async def test_long_session_counts_time_of_turns_only() -> None:
    now_s = 0.0
    source, round_ = LongSession(lambda: now_s), Round(1, 10, Conversation())

    await source.turn_started(round_.conversation)
    now_s += LONG_S - 1
    assert await source.reminders(round_) == ()
    await source.turn_ended(round_.conversation)
    now_s += 10 * LONG_S  # the user is away
    await source.turn_started(round_.conversation)
    assert await source.reminders(round_) == ()
    now_s += 1
    (long,) = await source.reminders(round_)

    assert "more than 30 minutes" in long.text
