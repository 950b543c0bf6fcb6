"""Shows running tools with the last lines of their output, and then their results."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field

from panpan.faces.terminal.rendering.cells import Canvas, cut
from panpan.faces.terminal.rendering.messages import (
    LiveOutput,
    call_line,
    end_mark,
    result_lines,
    running_line,
    title_line,
)
from panpan.faces.terminal.rendering.subagent import (
    RunningSubagent,
    Step,
    SubagentProgress,
    SubagentState,
    step_row,
    subagent_rows,
)
from panpan.faces.terminal.screen.theme import AGENT_ROLES
from panpan.faces.terminal.views.transcript import Transcript
from panpan.faces.turn_text import names_agent, title_of
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import Event, SubagentEvent, ToolFinished, ToolProgress, ToolStarted
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.types.role import Role

_FOLDED_LINES = 3
_EXPANDED_LINES = 20


@dataclass(frozen=True, slots=True)
class _ReadOnlyCall:
    """A finished call that only looks, or a thought between two such calls, until something else follows."""

    rows: Sequence[str]
    counted: tuple[str, str] | None = None
    """Verb and noun that count the call; None for a thought."""
    title: str = ""


def _in_short(looked: Sequence[_ReadOnlyCall]) -> str:
    """Return a summary such as "Read 4 files, searched for 2 patterns"; repeated calls count once."""
    titles: dict[tuple[str, str], set[str]] = {}
    for one in looked:
        if one.counted is not None:
            titles.setdefault(one.counted, set()).add(one.title)
    parts = [f"{verb} {len(seen):,} {noun}{'s' * (len(seen) != 1)}" for (verb, noun), seen in titles.items()]
    said = ", ".join(parts)
    return said[:1].upper() + said[1:]


@dataclass(slots=True)
class _Running:
    call: ToolStarted
    began_s: float
    output: LiveOutput = field(default_factory=LiveOutput)
    subagent: SubagentProgress | None = None
    """Progress of its subagent; None if it runs none."""
    ended_s: float | None = None
    """End of the call; its result follows after those of earlier calls."""
    is_error: bool = False

    def elapsed_s(self, now_s: float) -> float:
        return (now_s if self.ended_s is None else self.ended_s) - self.began_s


class ToolsView:
    """Shows the tools of a turn; the transcript keeps the output of interrupted ones.

    `asked_about` returns the ids of the calls that wait for the user's permission, `colour_of` the colour of a kind of
    subagent, or "", and `count_label_of` the verb and noun that count a call that only looks. Such calls become one row
    as soon as something else follows.
    """

    def __init__(
        self,
        canvas: Canvas,
        clock: Callable[[], float],
        transcript: Transcript,
        asked_about: Callable[[], Collection[str]] = tuple,
        colour_of: Callable[[str], str] = lambda kind: "",
        count_label_of: Callable[[ToolUseBlock], tuple[str, str] | None] = lambda use: None,
    ) -> None:
        self._canvas = canvas
        self._clock = clock
        self._asked: dict[str, ToolUseBlock] = {}
        self._running: dict[str, _Running] = {}
        self._transcript = transcript
        self._asked_about = asked_about
        self._colour_of = colour_of
        self._count_label_of = count_label_of
        self._looked: list[_ReadOnlyCall] = []
        self._is_expanded = False

    @property
    def is_expanded(self) -> bool:
        """True if more rows of running tools are shown."""
        return self._is_expanded

    def expand(self, *, is_on: bool) -> None:
        """Show more or fewer rows of running tools."""
        self._is_expanded = is_on

    @property
    def can_unfold(self) -> bool:
        """True if `expand` changes the display."""
        return self.are_running or bool(self._looked)

    def holds(self, rows: Sequence[str]) -> bool:
        """Take the rows of a thought that follows a call that only looks; return False if there is no such call."""
        if self._looked:
            self._looked.append(_ReadOnlyCall(rows))
        return bool(self._looked)

    def settle(self) -> None:
        """Put the calls that only looked into the scrollback, several as one row, before something else is shown."""
        if rows := self.looked_lines(self._canvas.width):
            self._looked = []
            self._canvas.show(*rows)

    def looked_lines(self, width: int) -> Sequence[str]:
        """Return the rows of the calls that only looked, as long as nothing else has followed."""
        if self._is_expanded or sum(one.counted is not None for one in self._looked) < 2:
            return [row for one in self._looked for row in one.rows]
        theme = self._canvas.theme
        return [call_line(end_mark(False, theme), _in_short(self._looked), "", " (ctrl+o)", width, theme)]

    @property
    def are_running(self) -> bool:
        """True until all results are shown."""
        return bool(self._running)

    def is_wanted(self, tool_use_id: str) -> bool:
        """Return True if a running subagent waits for a decision about this call."""
        subagents = (tool.subagent for tool in self._running.values() if tool.subagent is not None)
        return any(subagent.wants(tool_use_id) for subagent in subagents)

    @property
    def are_moving(self) -> bool:
        """True if a row changes over time: a tool works, and does not only wait for the user."""
        asked_about = self._asked_about()
        return any(
            tool.ended_s is None
            and tool.call.tool_use_id not in asked_about
            and not (tool.subagent is not None and tool.subagent.only_waits(asked_about))
            for tool in self._shown
        )

    @property
    def _shown(self) -> Sequence[_Running]:
        """Running tools that have a row; a tool that asks the user is shown by its question."""
        return [tool for tool in self._running.values() if not tool.call.asks_user]

    def follow(self, event: Event) -> None:
        """Show an event of the turn."""
        match event:
            case AssistantMessage():
                self._asked = {use.id: use for use in event.tool_uses}
            case ToolStarted():
                progress = SubagentProgress() if event.starts_agent else None
                self._running[event.tool_use_id] = _Running(event, self._clock(), subagent=progress)
            case SubagentEvent(parent_tool_use_id=use_id) if use_id in self._running:
                if not self._follow_subagent(self._running[use_id], event):
                    return
            case ToolProgress(tool_use_id=use_id, text=text) if use_id in self._running:
                self._running[use_id].output.feed(text)
            case ToolFinished(tool_use_id=use_id, is_error=is_error) if use_id in self._running:
                ended = self._running[use_id]
                ended.ended_s, ended.is_error = self._clock(), is_error
            case ToolResultMessage():
                self._show_result(event)
            case _:
                return
        self._canvas.refresh()

    def live_lines(self, width: int) -> Sequence[str]:
        theme, now_s = self._canvas.theme, self._clock()
        rows: list[str] = []
        subagents: list[RunningSubagent] = []
        count = _EXPANDED_LINES if self._is_expanded else _FOLDED_LINES
        for tool in self._shown:
            name, title, elapsed_s = tool.call.name, tool.call.title, tool.elapsed_s(now_s)
            if tool.subagent is not None:
                subagents.append(self._row_of(tool, elapsed_s, tool.subagent))
                continue
            if tool.ended_s is None:
                row = running_line(name, title, now_s, elapsed_s, width, theme, timeout_s=tool.call.timeout_s)
            else:
                row = title_line(name, title, elapsed_s, tool.is_error, width, theme)
            rows.append(row)
            if self._is_expanded and (above := tool.output.count_above(count)):
                rows.append(theme.paint("dim", cut(f"    … {above:,} line{'s' * (above != 1)} above", width)))
            rows += tool.output.preview(count, width, theme)
        asked_about = self._asked_about() if subagents else ()
        return rows + subagent_rows(subagents, asked_about, now_s, width, theme, is_expanded=self._is_expanded)

    def end(self) -> None:
        """End the turn: no results follow, and unfinished calls are shown with their output so far."""
        self.settle()
        theme, width = self._canvas.theme, self._canvas.width
        for tool in self._running.values():
            is_over, elapsed_s = tool.ended_s is not None, tool.elapsed_s(self._clock())
            name, title = tool.call.name, tool.call.title
            agent = self._agent_role(title) if tool.call.starts_agent else None
            steps: Sequence[Step] = ()
            if tool.subagent is not None and not is_over:
                steps = tool.subagent.steps(_FOLDED_LINES, (), has_words=False)
            self._canvas.show(
                title_line(name, title, elapsed_s, tool.is_error or not is_over, width, theme, agent=agent),
                *tool.output.preview(_FOLDED_LINES, width, theme),
                *(step_row(step, width, theme) for step in steps),
            )
            if printed := "\n".join(tool.output.lines()):
                self._transcript.keep_cut_short(f"{name} {title} (what it printed until then)", printed)
        self._running.clear()
        self._asked.clear()

    def _row_of(self, tool: _Running, elapsed_s: float, progress: SubagentProgress) -> RunningSubagent:
        state: SubagentState = "runs" if tool.ended_s is None else "failed" if tool.is_error else "done"
        agent = self._agent_role(tool.call.title) if tool.call.starts_agent else None
        return RunningSubagent(tool.call.name, tool.call.title, elapsed_s, progress, state, agent)

    def _agent_role(self, title: str) -> Role | None:
        """Return the colour of the kind of subagent at the beginning of a call's title."""
        return AGENT_ROLES.get(self._colour_of(title.partition(":")[0]))

    def _follow_subagent(self, tool: _Running, event: SubagentEvent) -> bool:
        """Add an event of a call's subagent, and return True if it changes the display."""
        if tool.subagent is None:
            tool.subagent = SubagentProgress()
        return tool.subagent.follow(event)

    def _show_result(self, message: ToolResultMessage) -> None:
        use = self._asked.pop(message.tool_use_id, None)
        tool = self._running.pop(message.tool_use_id, None)
        if tool is not None:
            name, title, is_agent = tool.call.name, tool.call.title, tool.call.starts_agent
        else:
            name, title, is_agent = (use.name, title_of(use), names_agent(use)) if use is not None else ("", "", False)
        says_time = tool is not None and tool.subagent is not None and not message.is_error  # in its summary
        elapsed_s = None if tool is None or says_time else tool.elapsed_s(self._clock())
        theme, width = self._canvas.theme, self._canvas.width
        agent = self._agent_role(title) if is_agent else None
        rows = (
            title_line(name, title, elapsed_s, message.is_error, width, theme, agent=agent),
            *result_lines(message, width, theme, title=title, is_expanded=self._is_expanded),
        )
        if not message.is_error and use is not None and (step := self._count_label_of(use)) is not None:
            self._looked.append(_ReadOnlyCall(rows, step, title))
            return
        self.settle()
        self._canvas.show(*rows)
