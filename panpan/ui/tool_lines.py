"""One line for what happens beside the answer, for faces that only print lines."""

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.display import DiffDisplay, SummaryDisplay
from panpan.types.events import Event, RetryScheduled, ToolStarted
from panpan.types.messages import ToolResultMessage

MAX_CHARS = 160
"""What a line shows of an argument or an error."""


class ToolLines:
    """Makes the lines of a turn; a result says whose it is where that cannot be seen."""

    def __init__(self) -> None:
        self._name_by_id: dict[str, str] = {}
        self._newest_id = ""

    def line(self, event: Event) -> str | None:
        """Return the line for `event`, safe to print on a terminal, or None where it needs none."""
        match event:
            case ToolStarted(tool_use_id=tool_use_id, name=name, title=title):
                self._name_by_id[tool_use_id], self._newest_id = name, tool_use_id
                return f"● {name} {_one_line(title)}"
            case ToolResultMessage(tool_use_id=tool_use_id):
                name = self._name_by_id.pop(tool_use_id, "")
                whose = f"{name}: " if name and tool_use_id != self._newest_id else ""
                return f"  └ {whose}{_result_text(event)}"
            case RetryScheduled(attempt=attempt, reason=reason, delay_s=delay_s):
                return f"! {_one_line(reason)}; try {attempt} in {delay_s:.1f} s"
            case _:
                return None


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
    line = " ".join(clean_for_terminal(text).split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
