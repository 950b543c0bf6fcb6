"""The pager shows the conversation whole and in its order."""

from pathlib import Path

from panpan.core.conversation import Conversation
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.transcript import MAX_CUT_SHORT, MAX_MESSAGES, Transcript
from panpan.session.log.agent_log import PastSubagents
from panpan.types.content import DiffDisplay, Display, FileDiff, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage
from tests.fakes.agent_logs import keep_turn

PLAIN = Theme("plain", has_sequences=False)


def called(id_: str, name: str = "Bash", **arguments: str) -> AssistantMessage:
    return AssistantMessage(content=(ToolUseBlock(id=id_, name=name, input=arguments),))


def result(id_: str, text: str, display: Display | None = None) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=id_, content=(TextBlock(text=text),))
    return ToolResultMessage(result=block, display=display)


def rows_of(*messages: Message) -> list[str]:
    return list(Transcript(Conversation(messages=messages)).rows(PLAIN))


def test_transcript_keeps_the_order_of_its_parts() -> None:
    answer = (ThinkingBlock(thinking="first\nthen"), TextBlock(text="Let me look."))
    call = ToolUseBlock(id="1", name="Bash", input={"command": "ls"})

    assert rows_of(
        UserMessage.of("what is\nhere?"),
        SystemReminder(text="a notice"),
        AssistantMessage(content=(*answer, call)),
        result("1", "a.txt\nb.txt"),
        AssistantMessage(content=(TextBlock(text="Two files."),)),
    ) == [
        *("❯ what is", "here?", ""),
        *("∴ thought", "first", "then", ""),
        *("Let me look.", ""),
        *("Bash ls", "a.txt", "b.txt", ""),
        *("Two files.", ""),
    ]


def test_results_of_several_calls_have_their_own_headings() -> None:
    uses = (ToolUseBlock(id=name, name="Read", input={"file_path": name}) for name in "ab")

    rows = rows_of(AssistantMessage(content=tuple(uses)), result("a", "one"), result("b", "two"))

    assert rows == ["Read a", "one", "", "Read b", "two", ""]


def test_change_is_told_as_a_diff() -> None:
    diff = FileDiff(path="a.py", diff="--- a.py\n+++ a.py\n@@ -1 +1 @@\n-one\n+two\n", added=1, removed=1)

    rows = rows_of(called("1", "Edit", file_path="a.py"), result("1", "edited", DiffDisplay(files=(diff,))))

    assert rows == ["Edit a.py", "@@ -1 +1 @@", "-one", "+two", ""]


def test_change_has_colours() -> None:
    diff = FileDiff(path="a.py", diff="@@ -1 +1 @@\n-one\n+  two\n", added=1, removed=1)
    messages = [called("1", "Edit", file_path="a.py"), result("1", "edited", DiffDisplay(files=(diff,)))]
    theme = Theme("dark")

    rows = list(Transcript(Conversation(messages=messages)).rows(theme))

    assert rows[2:4] == [theme.paint("removed", "-one"), theme.paint("added", "+  two")]


def test_transcript_knows_where_each_prompt_begins() -> None:
    rows: list[str] = []
    places: list[int] = []
    messages = [UserMessage.of("one"), AssistantMessage(content=(TextBlock(text="1"),)), UserMessage.of("two")]
    for row in Transcript(Conversation(messages=messages)).rows(PLAIN, lambda: places.append(len(rows))):
        rows.append(row)

    assert [rows[place] for place in places] == ["❯ one", "❯ two"]


def test_shell_command_is_shown_as_typed() -> None:
    told = (
        "<user_command>\n<command>\nls\n</command>\n<output>\na.txt\n</output>\n</user_command>\n"
        "The user ran this command; they ask for nothing with it alone."
    )

    assert rows_of(UserMessage.of(told)) == ["! ls", "a.txt", ""]


def test_cut_reply_stands_in_its_place() -> None:
    conversation = Conversation(messages=[UserMessage.of("one")])
    transcript = Transcript(conversation)
    transcript.keep_cut_short("∴ thought", "half")
    conversation.append(UserMessage.of("two"))

    assert list(transcript.rows(PLAIN)) == ["❯ one", "", "∴ thought", "half", "", "❯ two", ""]


def test_transcript_is_bounded_and_says_so() -> None:
    rows = rows_of(*(UserMessage.of(f"prompt {number}") for number in range(MAX_MESSAGES + 5)))
    transcript = Transcript(Conversation(messages=[UserMessage.of("one")]))
    for number in range(MAX_CUT_SHORT + 5):
        transcript.keep_cut_short(f"part {number}", "x")

    assert rows[:2] == ["… 5 earlier messages: /export writes them", "❯ prompt 5"]
    assert next(row for row in transcript.rows(PLAIN) if row.startswith("part")) == "part 5"


def test_empty_transcript_is_empty_and_drives_nothing() -> None:
    assert rows_of() == []
    evil = "\x1b]0;evil\x07\x1b[2J"
    rows = rows_of(
        UserMessage.of(evil),
        AssistantMessage(content=(ThinkingBlock(thinking=evil), TextBlock(text=evil))),
        called("1", evil, command=evil),
        result("1", evil),
    )

    assert "\x1b" not in "".join(rows)
    assert "\x07" not in "".join(rows)


def rows_with_subagents(folder: Path, *messages: Message) -> list[str]:
    return list(Transcript(Conversation(messages=messages), PastSubagents(folder)).rows(PLAIN))


def test_subagent_work_stands_before_its_result(tmp_path: Path) -> None:
    deep = called("t2", "Task", prompt="go", description="read it", subagent_type="plan")
    keep_turn(
        tmp_path,
        "aaaaaaaa",
        "t1",
        UserMessage.of("where is the loss?"),
        called("1", "Grep", pattern="loss"),
        result("1", "a.py: loss\n\nb.py"),
        deep,
        result("t2", "read"),
        AssistantMessage(content=(TextBlock(text="In a.py."),)),
    )
    said = AssistantMessage(content=(TextBlock(text="I read\x1b[2J."),))
    keep_turn(tmp_path, "bbbbbbbb", "t2", said, parent="aaaaaaaa")
    task = called("t1", "Task", prompt="where is the loss?", description="find it", subagent_type="explore")

    assert rows_with_subagents(tmp_path, task, result("t1", "It is in a.py."), called("2"), result("2", "x")) == [
        *("│ ❯ where is the loss?", "│"),
        *("│ Grep loss", "│ a.py: loss", "│", "│ b.py", "│"),
        *("│ │ I read.", "│ │"),
        *("│ Task plan: read it", "│ read", "│"),
        *("│ In a.py.", "│"),
        *("Task explore: find it", "It is in a.py.", ""),
        *("Bash", "x", ""),
    ]


def test_task_call_without_a_log_is_told_by_its_result(tmp_path: Path) -> None:
    task = called("t1", "Task", description="find it")

    assert rows_with_subagents(tmp_path, task, result("t1", "It is.")) == ["Task find it", "It is.", ""]
    assert rows_of(task, result("t1", "It is.")) == ["Task find it", "It is.", ""]
