"""A turn on the screen: what goes on, what was said before, what was saved."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from panpan.core.conversation import Conversation
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.system.text.cell_width import cell_width
from panpan.types.content import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import (
    BlockStarted,
    FileChange,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnded,
    Verification,
)
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, Usage, UserMessage
from panpan.types.permission import PermissionQuestion
from tests.faces.terminal.dialogs.drawn import Clock
from tests.fakes.subagents import of_agent, reply


class Canvas:
    """Keeps what was shown."""

    theme = Theme("plain", has_sequences=False)
    width = 60

    def __init__(self) -> None:
        self.rows: list[str] = []

    def show(self, *lines: str) -> None:
        self.rows += lines

    def refresh(self) -> None:
        pass

    async def drain(self) -> None:
        pass


class View:
    """A view, and whether the user is asked something."""

    def __init__(self) -> None:
        self.canvas = Canvas()
        self.is_asking = False
        self.doing = ""
        self.can_move = False
        self.spent_usd = 1.0
        self.clock = Clock()
        self.waiting = WaitingTime(self.clock)
        self.turns = TurnView(
            self.canvas,
            Conversation(),
            TurnCallbacks(
                is_asking=lambda: self.is_asking,
                doing=lambda: self.doing,
                can_move=lambda: self.can_move,
                spent_usd=lambda: self.spent_usd,
            ),
            waiting=self.waiting,
        )

    async def past(self, *messages: Message) -> Sequence[str]:
        await self.turns.show_past(messages)
        return [row for row in self.canvas.rows if row]


def answer(text: str) -> AssistantMessage:
    return AssistantMessage(content=(TextBlock(text=text),))


async def test_last_turns_of_an_old_conversation_are_shown_again() -> None:
    call = ToolUseBlock(id="1", name="Bash", input={"command": "ls"})
    result = ToolResultBlock(tool_use_id="1", content=(TextBlock(text="a.txt"),))

    rows = await View().past(
        UserMessage.of("what is here?"),
        AssistantMessage(content=(ThinkingBlock(thinking="hm"), TextBlock(text="Let me **look**."), call)),
        ToolResultMessage(result=result),
        answer("One file."),
    )

    assert rows == ["❯ what is here?", "∴ thought", "Let me look.", "● Bash ls", "  └ a.txt", "One file."]


async def test_long_conversation_says_how_much_came_before() -> None:
    messages = [message for number in range(500) for message in (UserMessage.of(f"{number}?"), answer(f"{number}."))]

    rows = await View().past(*messages)

    assert rows == [
        "… 994 earlier messages: Ctrl+O shows them",
        *(row for number in (497, 498, 499) for row in (f"❯ {number}?", f"{number}.")),
    ]


async def test_answer_that_was_interrupted_says_so_again() -> None:
    cut = answer("Half an").model_copy(update={"stop_reason": "interrupted"})

    assert await View().past(UserMessage.of("go"), cut) == ["❯ go", "Half an", "[Interrupted]"]


async def test_cause_of_a_past_turn_is_shown_before_its_answer() -> None:
    told = SystemReminder(text="Background task 3fa80001: finished\nIt was: make", cause="task:3fa80001")
    rows = await View().past(UserMessage.of("build it"), answer("It runs."), told, answer("It is done."))
    text = "\n".join(rows)

    assert text.index("It runs.") < text.index("3fa80001: finished. It was: make") < text.index("It is done.")


async def test_new_conversation_shows_no_past() -> None:
    assert await View().past() == []


def live(view: View, width: int = 60) -> str:
    return " ".join(row for row in view.turns.live_lines(width) if row)


def test_turn_row_says_that_a_question_waits() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    assert "working" in live(view)

    view.is_asking = True

    assert live(view) == "… waiting for your answer"


@pytest.mark.parametrize("width", [12, 20, 40, 200])
def test_retry_text_is_whole_at_every_width(width: int) -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.turns.show(RetryScheduled(3, "the provider has a problem (529)", 600.0))

    rows = [row for row in view.turns.live_lines(width) if row]

    assert " ".join(rows) == ("! try 3 in 600 s · R retries now · esc interrupts · the provider has a problem (529)")
    assert all(cell_width(row) <= width for row in rows)


def test_reason_of_any_length_leaves_room() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.turns.show(RetryScheduled(3, "a\n" * 10_000, 600.0))

    assert len(view.turns.live_lines(40)) < 15


def test_saved_rule_is_reported_in_one_line() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.canvas.rows.clear()

    view.turns.show(PermissionDecided("1", "Bash", True, "asked; the answer was yes"))
    view.turns.show(PermissionDecided("2", "Bash", True, "asked; yes", saved_rule="Bash(npm run *)"))

    assert view.canvas.rows == ["✓ kept for this project: Bash(npm run *)"]


def test_rows_stand_still_while_waiting_for_the_user() -> None:
    view = View()
    assert not view.turns.is_moving, "no turn runs"
    view.turns.begin(UserMessage.of("go"))
    assert view.turns.is_moving

    view.is_asking = True
    assert not view.turns.is_moving

    view.turns.show(ToolStarted("1", "AskUserQuestion", "Which?", asks_user=True))
    assert not view.turns.is_moving, "which is the question itself"
    assert live(view) == "… waiting for your answer"

    view.turns.show(ToolStarted("2", "Bash", "make"))
    assert view.turns.is_moving
    assert live(view).endswith("… waiting for your answer · the others go on")
    view.turns.show(ToolFinished("2", False, 1.0))
    assert not view.turns.is_moving
    assert live(view).endswith("… waiting for your answer")


def ended(view: View, duration_s: float) -> str:
    view.turns.show(TurnEnded(rounds=2, usage=Usage(), cost_usd=None, duration_s=duration_s, api_duration_s=0.0))
    return view.canvas.rows[-1]


def test_turn_time_omits_waiting_for_the_user() -> None:
    view = View()
    with view.waiting.counted():
        view.clock.now_s += 100  # before the turn, as for a list that the user opened
    view.turns.begin(UserMessage.of("go"))
    with view.waiting.counted():
        view.clock.now_s += 40
    assert view.turns.duration_s < 0, "the test's clock and that of the turn are two"

    assert ended(view, 52.5) == "12.5 s (and 40 s for your answers) · 2 rounds"


def test_turn_that_waited_for_nobody_tells_its_time_alone() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))

    assert ended(view, 52.5) == "52.5 s · 2 rounds"


def test_end_line_omits_whole_parts_without_room() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.turns.show(
        TurnEnded(
            rounds=7,
            usage=Usage(input_tokens=105),
            cost_usd=0.0005,
            duration_s=1000.1,
            api_duration_s=0.0,
            files=(FileChange("pyproject.toml", "modified", 2, 0), FileChange("lamp.py", "modified", 1234, 12)),
        )
    )

    assert view.canvas.rows[-1] == "1000.1 s · 7 rounds · $0.0005 · 2 files +1,236 -12"


def test_end_of_a_turn_marks_a_cost_that_is_estimated() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.turns.show(TurnEnded(1, Usage(), 0.0005, 1.0, 0.0, is_cost_estimated=True))

    assert view.canvas.rows[-1] == "1.0 s · 1 round · ~$0.0005"


def test_evidence_for_the_answer_precedes_the_end_line() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    found = Verification(["3 tests passed"], unverified=["works on GPU\x1b[2J"], problem="run something")
    view.turns.show(TurnEnded(1, Usage(), None, 1.0, 0.0, verification=found))

    assert view.canvas.rows[-3:] == [
        'verified: 3 tests passed · unverified: "works on GPU"',
        "! run something",
        "1.0 s · 1 round",
    ]


def test_turn_without_a_prompt_shows_none() -> None:
    view = View()
    view.turns.begin(None)
    is_shown = bool(live(view))
    view.turns.show(TurnEnded(rounds=0, usage=Usage(), cost_usd=None, duration_s=0.1, api_duration_s=0))
    view.turns.end()

    assert (is_shown, view.canvas.rows) == (True, [])


def test_background_key_is_shown_while_something_can_move() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    before = live(view)
    view.can_move = True

    assert ("ctrl+b" in before, "ctrl+b background" in live(view)) == (False, True)


def test_plan_that_was_neither_approved_nor_sent_back_is_kept() -> None:
    view = View()

    view.turns.keep_plan("# Plan\n\n1. Change it.")

    assert view.canvas.rows[0] == "The plan was not approved:"
    assert "1. Change it." in "\n".join(view.canvas.rows)


def test_working_row_shows_the_todo_in_progress() -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    assert "* working 0 s" in view.turns.live_lines(60)[-1]

    view.doing = "Running the tests of all of the packages that there are"
    row = view.turns.live_lines(60)[-1]

    assert row.startswith("* Running the tests of all")
    assert "esc interrupts" in row, "long words leave room for what a key does"


def test_subagents_saved_rule_is_reported_too() -> None:
    view = View()

    for event in of_agent(PermissionDecided("1", "Bash", True, "you said so", saved_rule="Bash(make)")):
        view.turns.show(event)

    assert view.canvas.rows == ["✓ kept for this project: Bash(make)"]


def test_words_of_a_subagent_are_no_part_of_the_answer() -> None:
    view = View()
    view.turns.begin(UserMessage.of("find it"))
    view.turns.show(ToolStarted("t1", "Task", "explore: find it", starts_agent=True))

    for event in of_agent(ReplyStarted("m", "small"), BlockStarted(0, "text"), TextDelta(0, "secret\nwords\n\n")):
        view.turns.show(event)

    assert "secret" not in "\n".join((*view.canvas.rows, *view.turns.live_lines(60)))


def test_question_belongs_to_the_turn_that_waits_for_its_asker() -> None:
    view = View()
    own = PermissionQuestion("1", "Bash", {}, "make", "it changes files")
    view.turns.begin(UserMessage.of("find it"))
    view.turns.show(ToolStarted("t1", "Task", "explore: find it", starts_agent=True))
    for event in of_agent(reply("", ("7", "Bash", {"command": "make"}))):
        view.turns.show(event)

    of_subagents = [replace(own, tool_use_id=id_, agent="explore: it") for id_ in ("7", "8")]

    assert [view.turns.is_of_turn(question) for question in (own, *of_subagents)] == [True, True, False]


@pytest.mark.parametrize(("fails", "times"), [(True, 3), (False, 2)])
def test_replies_that_broke_off_are_said_to_be_paid(fails: bool, times: int) -> None:
    view = View()
    view.turns.begin(UserMessage.of("go"))
    view.turns.show(RetryScheduled(2, "the provider has a problem (529)", 0.0))  # which had sent nothing
    for attempt in (3, 4):
        view.turns.show(ReplyStarted("1", "m"))
        view.turns.show(RetryScheduled(attempt, "the connection broke", 0.0))
    view.turns.show(ReplyStarted("1", "m"))
    view.spent_usd = 1.25
    if fails:
        view.turns.fail("the connection broke")
    else:
        view.turns.show(answer("at last"))
    view.turns.end()

    assert f"the reply broke off {times} times; each try is paid: ~$0.2500 in this turn" in " ".join(view.canvas.rows)


def test_turn_without_broken_replies_does_not_mention_them() -> None:
    view = View()
    for _ in range(2):
        view.turns.begin(UserMessage.of("go"))
        view.turns.show(ReplyStarted("1", "m"))
        view.turns.show(answer("here"))
        view.turns.end()

    assert "broke off" not in "".join(view.canvas.rows)
