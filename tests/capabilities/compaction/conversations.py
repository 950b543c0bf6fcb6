"""Conversations to be made shorter: of hand, and of hypothesis."""

from collections.abc import Sequence

from hypothesis import strategies as st

from panpan.capabilities.history.capability import ReadHistoryTool
from panpan.capabilities.questions.capability import AskUserQuestionTool
from panpan.core.conversation import Conversation
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, SystemReminder, ToolResultMessage, UserMessage

TOOLS = (ReadHistoryTool(tuple), AskUserQuestionTool(None))
HISTORY = TOOLS[0].definition
SUMMARY = (
    "## Goal\nFind the needle.\n## Constraints\nnone\n## Progress\nHalf of the files hold nothing.\n"
    "## Decisions\nnone\n## Open questions\nnone\n## Next steps\nRead the other half.\n## Critical context\nnone"
)


def replied(text: str, *uses: ToolUseBlock) -> AssistantMessage:
    texts = (TextBlock(text=text),) if text else ()
    return AssistantMessage(content=(*texts, *uses), model="scripted", stop_reason="tool_use" if uses else "end_turn")


def used(id_: str, name: str = "Read", **arguments: object) -> ToolUseBlock:
    return ToolUseBlock(id=id_, name=name, input=arguments)


def answered(id_: str, text: str, *, is_error: bool = False, **options: object) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=id_, content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block, **options)  # type: ignore[arg-type]


def reading(number: int, chars: int = 4_000) -> list[Message]:
    """A round that reads a file."""
    id_ = f"read{number}"
    return [replied("", used(id_, file_path=f"file{number}.py")), answered(id_, f"content {number} " + "x" * chars)]


def talking(number: int, chars: int = 4_000) -> list[Message]:
    """A turn of words."""
    return [UserMessage.of(f"question {number}"), replied(f"answer {number} " + "y" * chars)]


def conversation_of(messages: Sequence[Message]) -> Conversation:
    return Conversation("You are an agent.", (HISTORY,), messages)


def is_paired(messages: Sequence[Message]) -> bool:
    """True if each call is answered once, right behind its reply, and each result has its call."""
    open_: list[str] = []
    for message in messages:
        match message:
            case ToolResultMessage():
                if message.tool_use_id not in open_:
                    return False
                open_.remove(message.tool_use_id)
            case _ if open_:
                return False
            case AssistantMessage():
                open_ = [use.id for use in message.tool_uses]
            case _:
                pass
    return not open_


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Turns with rounds of several calls, of all sizes, with reminders between them."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 6))):
        words = draw(st.sampled_from(["look around", "always write tests", "remember: teal", "go on " + "z" * 3_000]))
        messages.append(UserMessage.of(f"{words} ({turn})"))
        if turn == 0:
            messages.append(SystemReminder(text="project rules PINNED-0", cause="session:start"))
        for round_ in range(draw(st.integers(0, 4))):
            ids = [f"c{turn}-{round_}-{call}" for call in range(draw(st.integers(1, 4)))]
            messages.append(replied(draw(st.sampled_from(["", "I look " * 200])), *(used(id_) for id_ in ids)))
            for id_ in draw(st.permutations(ids)):
                chars = draw(st.sampled_from([0, 10, 2_000, 30_000]))
                messages.append(answered(id_, "o" * chars, is_error=draw(st.booleans())))
            if draw(st.booleans()):
                messages.append(SystemReminder(text=f"rules PINNED-{turn}-{round_}", cause="memory:/w/AGENTS.md"))
            if draw(st.booleans()):
                messages.append(SystemReminder(text="something of the moment", cause="limit:rounds"))
        if turn < 5 and draw(st.booleans()):
            messages.append(replied(f"done with {turn} " + "t" * draw(st.sampled_from([0, 500, 20_000]))))
    return messages
