"""Shows tools while they run, a row each and the last lines of what they print, and what came of them."""

from collections.abc import Callable, Sequence
from dataclasses import field

from panpan.tools.planning.ask_user import AskUserQuestionTool
from panpan.tools.planning.exit_plan_mode import ExitPlanModeTool
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import Event, ToolFinished, ToolProgress, ToolStarted
from panpan.types.messages import AssistantMessage, ToolResultMessage
from panpan.ui.repl.canvas import Canvas
from panpan.ui.repl.rendering.cells import cut
from panpan.ui.repl.rendering.live_output import LiveOutput
from panpan.ui.repl.rendering.tool import result_lines, running_line, title_line, title_of
from panpan.ui.repl.transcript import Transcript

_FOLDED_LINES = 3
_EXPANDED_LINES = 20
_ASKING = frozenset({AskUserQuestionTool.name, ExitPlanModeTool.name})
"""Tools that do nothing but wait for the user."""


@dataclass(slots=True)
class _Running:
    name: str
    title: str
    began_s: float
    timeout_s: float | None
    output: LiveOutput = field(default_factory=LiveOutput)
    ended_s: float | None = None


class ToolsView:
    """Follows the tools of a turn.

    Args:
        canvas: Where they are shown.
        clock: Returns seconds that only ever grow.
        transcript: Keeps what those printed that were cut short.
    """

    def __init__(self, canvas: Canvas, clock: Callable[[], float], transcript: Transcript) -> None:
        self._canvas = canvas
        self._clock = clock
        self._asked: dict[str, ToolUseBlock] = {}
        self._running: dict[str, _Running] = {}
        self._transcript = transcript
        self.is_expanded = False

    @property
    def are_running(self) -> bool:
        """Whether a tool runs, or its result is still to come."""
        return bool(self._running)

    @property
    def are_moving(self) -> bool:
        """Whether one works, so that its row changes by itself."""
        return any(tool.ended_s is None for tool in self._shown)

    @property
    def _shown(self) -> Sequence[_Running]:
        """Those that have a row: what only asks the user is shown by its question."""
        return [tool for tool in self._running.values() if tool.name not in _ASKING]

    def follow(self, event: Event) -> None:
        """Show what `event` adds."""
        match event:
            case AssistantMessage():
                self._asked = {use.id: use for use in event.tool_uses}
            case ToolStarted(tool_use_id=use_id, name=name, title=title, timeout_s=timeout_s):
                self._running[use_id] = _Running(name, title, self._clock(), timeout_s)
            case ToolProgress(tool_use_id=use_id, text=text) if use_id in self._running:
                self._running[use_id].output.feed(text)
            case ToolFinished(tool_use_id=use_id) if use_id in self._running:
                self._running[use_id].ended_s = self._clock()
            case ToolResultMessage():
                self._show_result(event)
            case _:
                return
        self._canvas.refresh()

    def live_lines(self, width: int) -> Sequence[str]:
        """Return rows for the tools that run."""
        theme, now_s = self._canvas.theme, self._clock()
        rows: list[str] = []
        count = _EXPANDED_LINES if self.is_expanded else _FOLDED_LINES
        for tool in self._shown:
            elapsed_s = (tool.ended_s or now_s) - tool.began_s
            rows.append(running_line(tool.name, tool.title, now_s, elapsed_s, width, theme, timeout_s=tool.timeout_s))
            if self.is_expanded and (above := tool.output.count_above(count)):
                rows.append(theme.paint("dim", cut(f"    … {above:,} line{'s' * (above != 1)} above", width)))
            rows += tool.output.preview(count, width, theme)
        return rows

    def end(self) -> None:
        """The turn is over: no result follows; what was still running is shown as far as it got."""
        theme, width = self._canvas.theme, self._canvas.width
        for tool in self._running.values():
            elapsed_s = (tool.ended_s or self._clock()) - tool.began_s
            self._canvas.show(
                title_line(tool.name, tool.title, elapsed_s, True, width, theme),
                *tool.output.preview(_FOLDED_LINES, width, theme),
            )
            if printed := "\n".join(tool.output.lines()):
                self._transcript.keep_cut_short(f"{tool.name} {tool.title} (what it printed until then)", printed)
        self._running.clear()
        self._asked.clear()

    def _show_result(self, message: ToolResultMessage) -> None:
        use = self._asked.pop(message.tool_use_id, None)
        tool = self._running.pop(message.tool_use_id, None)
        name = tool.name if tool is not None else use.name if use is not None else ""
        title = tool.title if tool is not None else title_of(use) if use is not None else ""
        elapsed_s = None if tool is None else (tool.ended_s or self._clock()) - tool.began_s
        theme, width = self._canvas.theme, self._canvas.width
        self._canvas.show(
            title_line(name, title, elapsed_s, message.is_error, width, theme),
            *result_lines(message, use, width, theme, title=title, is_expanded=self.is_expanded),
        )
