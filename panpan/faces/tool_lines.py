"""What happens beside the answer, a line each, for faces that only print lines."""

from collections.abc import Sequence

from panpan.session.in_words import compaction_lines
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import ToolUseBlock
from panpan.types.display import (
    ChecklistDisplay,
    DiffDisplay,
    FileDiff,
    PlanDisplay,
    SummaryDisplay,
    TableDisplay,
    TextDisplay,
    checklist_counts,
)
from panpan.types.events import Compacted, Event, PermissionDecided, RetryScheduled, SubagentEvent, ToolStarted, Waiting
from panpan.types.messages import AssistantMessage, ToolResultMessage


def title_of(use: ToolUseBlock) -> str:
    """Return the argument that matters, as the model wrote it: of a subagent who it is, else the first text."""
    if names_agent(use):
        kind, description = use.input.get("subagent_type"), use.input.get("description")
        return ": ".join(part for part in (kind, description) if isinstance(part, str) and part)
    return next((value for value in use.input.values() if isinstance(value, str)), "")


def names_agent(use: ToolUseBlock) -> bool:
    """Return True if the arguments of a call give work to a subagent; of one that never ran nothing else is known."""
    return "subagent_type" in use.input or {"description", "prompt"} <= use.input.keys()


def counts_text(file: FileDiff) -> str:
    """Return how many lines were added and removed, such as "+3 -1", or why there are none to count."""
    if file.added or file.removed:
        return f"+{file.added} -{file.removed}"
    return "empty" if file.is_new or file.is_deleted else "no line changed"


def diff_text(diff: str) -> Sequence[str]:
    """Return the lines of a unified diff from its first hunk on; the names of the files stand in a heading."""
    lines = diff.split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[begin:-1] if lines[-1] == "" else lines[begin:]


MAX_CHARS = 160
"""What a line shows of an argument or an error."""
_ERROR_HEAD, _ERROR_TAIL = 3, 6
"""Lines of an error: what was tried stands at its beginning, what went wrong at its end."""


class ToolLines:
    """Makes the lines of a turn; a result says whose it is where that cannot be seen."""

    def __init__(self) -> None:
        self._waiting: dict[str, ToolUseBlock] = {}
        """Calls that have not started; one that never does, since it is refused, gets its line with its result."""
        self._running: dict[str, str] = {}
        """Names of the calls that have started, by id; of a subagent, who it is."""
        self._subagents: set[str] = set()
        """Ids of those of them that run one."""
        self._beside: set[str] = set()
        """Ids of those that ran while another did."""
        self._newest_id = ""

    def lines(self, event: Event) -> Sequence[str]:
        """Return the lines for `event`, safe to print on a terminal; most events need none."""
        match event:
            case AssistantMessage():
                self._waiting = {use.id: use for use in event.tool_uses}
            case ToolStarted(tool_use_id=tool_use_id, name=name, title=title, starts_agent=starts_agent):
                self._waiting.pop(tool_use_id, None)
                self._running[tool_use_id], self._newest_id = name, tool_use_id
                if starts_agent:
                    self._running[tool_use_id] = _one_line(title)
                    self._subagents.add(tool_use_id)
                    self._beside |= self._subagents if len(self._subagents) > 1 else set()
                return (f"● {name} {_one_line(title)}",)
            case SubagentEvent():
                return self._lines_of_subagent(event)
            case ToolResultMessage(tool_use_id=tool_use_id):
                self._subagents.discard(tool_use_id)
                if use := self._waiting.pop(tool_use_id, None):
                    self._newest_id = tool_use_id
                    return (_line_of_refused(use), *_result_lines(event, ""))
                name = self._running.pop(tool_use_id, "")
                is_plain = tool_use_id == self._newest_id and tool_use_id not in self._beside
                self._beside.discard(tool_use_id)
                whose = f"{name}: " if name and not is_plain else ""
                return _result_lines(event, whose)
            case RetryScheduled(attempt=attempt, reason=reason, delay_s=delay_s):
                return (f"! {_one_line(reason)}; try {attempt} in {delay_s:.1f} s",)
            case Compacted(compaction=compaction):
                return tuple(f"… {clean_line(line)}" for line in compaction_lines(compaction))
            case Waiting(reason=reason):
                return (f"… {_one_line(reason)}",)
            case _:
                pass
        return ()

    def _lines_of_subagent(self, event: SubagentEvent) -> Sequence[str]:
        """Return the line of a call of a subagent, which says whose it is where several run, and of what it waits for.

        What it says is not told: only its parent answers the user.
        """
        who = self._running.get(event.parent_tool_use_id, "")
        begin = f"{who}: " if who and len(self._subagents) > 1 else ""
        match event.innermost.event:
            case ToolStarted(name=name, title=title):
                said = f"● {begin}{name} {_one_line(title)}"
            case PermissionDecided(is_allowed=False, name=name, reason=reason):
                said = f"✗ {begin}{name} was not allowed: {_one_line(reason)}"
            case RetryScheduled(attempt=attempt, reason=reason, delay_s=delay_s):
                said = f"! {begin}{_one_line(reason)}; try {attempt} in {delay_s:.1f} s"
            case _:
                return ()
        return (f"    {said}".rstrip(),)


def _line_of_refused(use: ToolUseBlock) -> str:
    """Return the line of a call that no tool gave a title, since it never ran."""
    return f"● {_one_line(f'{use.name} {title_of(use)}')}"


def _result_lines(result: ToolResultMessage, whose: str) -> Sequence[str]:
    """Return one line for a result, and for an error its head and its tail."""
    if not result.is_error:
        return (f"  └ {whose}{_result_text(result)}",)
    lines = [_one_line(line) for line in result.text.splitlines() if line.strip()]
    hidden = len(lines) - _ERROR_HEAD - _ERROR_TAIL
    if hidden > 1:  # the note would take the place of one line
        lines = [*lines[:_ERROR_HEAD], f"… {hidden} more lines", *lines[-_ERROR_TAIL:]]
    first, *others = lines or [""]
    return (f"  └ {whose}error: {first}".rstrip(), *(f"    {line}" for line in others))


def _result_text(result: ToolResultMessage) -> str:
    match result.display:
        case DiffDisplay(files=files, notes=notes):
            changed = ", ".join(f"{_one_line(file.path)} {counts_text(file)}" for file in files)
            return "; ".join([changed, *map(_one_line, notes)])
        case SummaryDisplay(text=text) | PlanDisplay(summary=text):
            return _one_line(text)
        case ChecklistDisplay(todos=todos):
            return checklist_counts(todos)
        case TextDisplay():
            return _one_line(result.display.text)
        case TableDisplay(rows=rows):
            return f"{len(rows):,} row{'s' if len(rows) != 1 else ''}"
        case None:
            lines = result.text.splitlines()
            return _one_line(result.text) if len(lines) == 1 else f"{len(lines)} lines"


def _one_line(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= MAX_CHARS else f"{line[: MAX_CHARS - 1]}…"
