"""One line for what happens beside the answer, for faces that only print lines."""

from panpan.system.terminal_text import clean_for_terminal
from panpan.types.display import DiffDisplay, SummaryDisplay
from panpan.types.events import Event, RetryScheduled, ToolStarted
from panpan.types.messages import ToolResultMessage

MAX_CHARS = 160
"""What a line shows of an argument or an error."""


def tool_line(event: Event) -> str | None:
    """Return the line for `event`, safe to print on a terminal, or None where it needs none."""
    match event:
        case ToolStarted(name=name, title=title):
            return f"● {name} {_one_line(title)}"
        case ToolResultMessage():
            return f"  └ {_result_line(event)}"
        case RetryScheduled(attempt=attempt, reason=reason, delay_s=delay_s):
            return f"! {_one_line(reason)}; try {attempt} in {delay_s:.1f} s"
        case _:
            return None


def _result_line(result: ToolResultMessage) -> str:
    if result.is_error:
        return f"error: {_one_line(result.text)}"
    match result.display:
        case DiffDisplay(files=files):
            return ", ".join(f"{_one_line(file.path)} +{file.added} -{file.removed}" for file in files)
        case SummaryDisplay(text=text):
            return _one_line(text)
        case None:
            lines = result.text.count("\n") + 1 if result.text else 0
            return _one_line(result.text) if lines == 1 else f"{lines} lines"


def _one_line(text: str) -> str:
    line = " ".join(clean_for_terminal(text).split())
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
