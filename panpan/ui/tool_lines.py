"""One line for what happens beside the answer, for faces that only print lines."""

from collections.abc import Sequence

from panpan.system.terminal_text import clean_line
from panpan.types.content import ToolUseBlock
from panpan.types.display import DiffDisplay, SummaryDisplay
from panpan.types.events import Event, RetryScheduled, ToolStarted, Waiting
from panpan.types.messages import AssistantMessage, ToolResultMessage

MAX_CHARS = 160
"""What a line shows of an argument or an error."""


class ToolLines:
    """Makes the lines of a turn; a result says whose it is where that cannot be seen."""

    def __init__(self) -> None:
        self._waiting: dict[str, ToolUseBlock] = {}
        """Calls that have not started; one that never does, since it is refused, gets its line with its result."""
        self._running: dict[str, str] = {}
        """Names of the calls that have started, by id."""
        self._newest_id = ""

    def lines(self, event: Event) -> Sequence[str]:
        """Return the lines for `event`, safe to print on a terminal; most events need none."""
        match event:
            case AssistantMessage():
                self._waiting = {use.id: use for use in event.tool_uses}
            case ToolStarted(tool_use_id=tool_use_id, name=name, title=title):
                self._waiting.pop(tool_use_id, None)
                self._running[tool_use_id], self._newest_id = name, tool_use_id
                return (f"● {name} {_one_line(title)}",)
            case ToolResultMessage(tool_use_id=tool_use_id):
                if use := self._waiting.pop(tool_use_id, None):
                    self._newest_id = tool_use_id
                    return (_line_of_refused(use), f"  └ {_result_text(event)}")
                name = self._running.pop(tool_use_id, "")
                whose = f"{name}: " if name and tool_use_id != self._newest_id else ""
                return (f"  └ {whose}{_result_text(event)}",)
            case RetryScheduled(attempt=attempt, reason=reason, delay_s=delay_s):
                return (f"! {_one_line(reason)}; try {attempt} in {delay_s:.1f} s",)
            case Waiting(reason=reason):
                return (f"… {_one_line(reason)}",)
            case _:
                pass
        return ()


def _line_of_refused(use: ToolUseBlock) -> str:
    """Return the line of a call that no tool gave a title, since it never ran: its first text says most."""
    text = next((value for value in use.input.values() if isinstance(value, str)), "")
    return f"● {_one_line(f'{use.name} {text}')}"


def _result_text(result: ToolResultMessage) -> str:
    if result.is_error:
        lines = [line for line in result.text.splitlines() if line.strip()]
        return f"error: {_one_line(' '.join(lines[-2:]))}"  # what went wrong stands at the end
    match result.display:
        case DiffDisplay(files=files):
            return ", ".join(f"{_one_line(file.path)} +{file.added} -{file.removed}" for file in files)
        case SummaryDisplay(text=text):
            return _one_line(text)
        case None:
            lines = result.text.splitlines()
            return _one_line(result.text) if len(lines) == 1 else f"{len(lines)} lines"


def _one_line(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
