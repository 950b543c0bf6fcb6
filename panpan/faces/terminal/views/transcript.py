"""The whole conversation for the pager, in order: prompts, answers, thoughts and the output of tools.

It is made on request from the messages, and from interrupted output, which no message has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from panpan.core.conversation import Conversation
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import diff_text, title_of
from panpan.session.log.agent_log import PastSubagents, PastTurns
from panpan.system.text.terminal_text import clean_for_terminal, clean_line
from panpan.types.attachments import attached_names, data_lines, parse_shell_command
from panpan.types.content import DiffDisplay, RejectedDisplay, SummaryDisplay, TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from panpan.types.role import Role

MAX_MESSAGES = 5_000
"""Most messages shown; earlier ones are in the log."""
MAX_CUT_SHORT = 50


class Transcript:
    """Transcript of a session and, as far as known, of its subagents."""

    def __init__(self, conversation: Conversation, subagents: PastSubagents | None = None) -> None:
        self._conversation = conversation
        self._subagents = subagents
        self._cut_short: list[tuple[int, str, str]] = []
        """Number of messages before it, heading and text of each interrupted output."""

    def keep_cut_short(self, heading: str, text: str) -> None:
        """Keep a text that no message has, such as the output of an interrupted tool, under a heading of one line."""
        kept = self._cut_short[1 - MAX_CUT_SHORT :]
        self._cut_short = [*kept, (len(self._conversation.messages), heading, text)]

    def rows(self, theme: Theme, on_prompt: Callable[[], None] = lambda: None) -> Iterator[str]:
        """Yield the rows without escape sequences from outside, the newest last. May be read in a thread.

        `on_prompt` is called before the rows of each prompt.
        """
        messages, cut_short = list(self._conversation.messages), self._cut_short
        if first := max(len(messages) - MAX_MESSAGES, 0):
            yield theme.paint("dim", f"… {first:,} earlier messages: /export writes them")
        teller = _TranscriptRows(theme, self._subagents.turns() if self._subagents is not None else None)
        for number, message in enumerate(messages[first:], first + 1):
            if isinstance(message, UserMessage):
                on_prompt()
            yield from teller.rows_of(message)
            for before, heading, text in cut_short:
                if before == number:
                    yield from _part(heading, text, theme)


class _TranscriptRows:
    """Makes the rows of one conversation, message by message; `agent_id` is empty for the session's own."""

    def __init__(self, theme: Theme, turns: PastTurns | None, agent_id: str = "") -> None:
        self._theme = theme
        self._turns = turns
        self._agent_id = agent_id
        self._calls: dict[str, ToolUseBlock] = {}

    def rows_of(self, message: Message) -> Iterator[str]:
        """Yield the rows of one message; a call comes with its result, and its subagent's conversation before that."""
        theme = self._theme
        match message:
            case UserMessage() if (ran := parse_shell_command(message)) is not None:
                yield from _part(f"! {ran.command}", ran.output, theme, "user")
            case UserMessage():
                names = "".join(f"\n[{name}]" for name in (*attached_names(message), *data_lines(message)))
                said = clean_for_terminal(f"❯ {message.typed}{names}").split("\n")
                yield from (*(theme.paint("user", line) for line in said), "")
            case AssistantMessage():
                yield from self._rows_of_reply(message)
            case ToolResultMessage():
                use = self._calls.pop(message.tool_use_id, None)
                heading = f"{use.name} {title_of(use)}" if use is not None else ""
                if use is not None:
                    yield from self._rows_of_subagent(use.id)
                rows = _result_rows(message, theme)
                yield from _headed(heading, rows, theme, "bad" if message.is_error else "strong")
            case _:
                pass

    def _rows_of_reply(self, message: AssistantMessage) -> Iterator[str]:
        for block in message.content:
            match block:
                case ThinkingBlock(thinking=thought):
                    yield from _part("∴ thought", thought.strip(), self._theme, "dim")
                case TextBlock(text=text):
                    yield from (*_lines(text), "")
                case ToolUseBlock():
                    self._calls[block.id] = block
                case _:
                    pass

    def _rows_of_subagent(self, tool_use_id: str) -> Iterator[str]:
        turn = self._turns.take(tool_use_id, of=self._agent_id) if self._turns is not None else None
        if turn is None:
            return
        mark = self._theme.paint("dim", "│")
        teller = _TranscriptRows(self._theme, self._turns, turn.agent_id)
        for message in turn.messages():
            yield from (f"{mark} {row}".rstrip(" ") for row in teller.rows_of(message))


_OF_DIFF: Mapping[str, Role] = {"+": "added", "-": "removed", "@": "hunk"}


def _result_rows(message: ToolResultMessage, theme: Theme) -> Sequence[str]:
    """Return the diff if there is one, else the result's text for people or its summary."""
    files = message.display.files if isinstance(message.display, DiffDisplay) else ()
    rows: list[str] = []
    for file in files:
        rows += [theme.paint("strong", clean_line(file.path))] if len(files) > 1 else []
        rows += [theme.paint(_OF_DIFF.get(line[:1]), line) for line in diff_text(clean_for_terminal(file.diff))]
    said = message.display.text if isinstance(message.display, SummaryDisplay | RejectedDisplay) else ""
    return rows or _lines(message.text_for_people or said)


def _part(heading: str, text: str, theme: Theme, role: Role = "strong") -> Iterator[str]:
    return _headed(heading, _lines(text), theme, role)


def _headed(heading: str, rows: Sequence[str], theme: Theme, role: Role) -> Iterator[str]:
    yield theme.paint(role, clean_line(heading))
    yield from rows
    yield ""


def _lines(text: str) -> Sequence[str]:
    return clean_for_terminal(text).strip("\n").split("\n")
