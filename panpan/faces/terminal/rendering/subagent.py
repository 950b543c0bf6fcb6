"""Progress of running subagents, and its rows."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.faces.terminal.rendering.cells import cut, fit_parts
from panpan.faces.terminal.rendering.messages import call_line, end_mark, spinner
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.turn_text import title_of
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import clean_line, spoken_s
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    ToolFinished,
    ToolStarted,
    Waiting,
)
from panpan.types.messages import AssistantMessage, ToolResultMessage, Usage
from panpan.types.role import Role

# Progress of one subagent as the screen shows it: its newest steps, and totals.
#
# The rule: an event costs the same whatever came before, and the kept data does not grow. The rest is in its log.

MAX_STEPS = 20
"""Most steps kept of one subagent."""
MAX_TEXT_CHARS = 300
"""Most characters of a step's text."""
_MAX_WANTED = 100
"""Most undecided calls that are kept."""

StepState: TypeAlias = Literal["asks", "runs", "done", "failed", "refused", "said", "waits"]

_Key: TypeAlias = tuple[str, str]
"""Id of the agent and of its call."""


@dataclass(slots=True)
class Step:
    """One action or text of a subagent."""

    name: str
    """Name of the tool; empty if the step is not a call."""
    text: str
    """Title of the call, words, or reason for waiting; of any origin and not cleaned yet."""
    state: StepState
    depth: int = 0
    """Depth of nesting: 0 for its own step, 1 for a step of a subagent that it has started."""


class SubagentProgress:
    """Follows a subagent and those that it starts."""

    def __init__(self) -> None:
        self.rounds = 0
        """Its own rounds."""
        self.calls = 0
        """Calls, including those of its own subagents; so are the tokens."""
        self._usage = Usage()
        self._steps: deque[tuple[_Key, Step]] = deque(maxlen=MAX_STEPS)
        self._wanted: dict[_Key, Step] = {}
        """Calls that wait for a decision, the oldest first."""
        self._waits_for = ""

    @property
    def tokens(self) -> int:
        return self._usage.context_tokens

    def follow(self, event: SubagentEvent) -> bool:
        """Handle an event of the subagent, and return True if it changes the display."""
        here, depth = event.innermost, 0
        while event is not here and isinstance(event.event, SubagentEvent):
            event, depth = event.event, depth + 1
        match here.event:
            case AssistantMessage() as reply:
                self._take_reply(here.agent_id, reply, depth)
            case PermissionDecided(tool_use_id=id_, name=name):
                step = self._wanted.pop((here.agent_id, id_), None)
                if not (here.event.is_allowed or self._runs((here.agent_id, id_))):  # a running call only ends
                    text = step.text if step is not None else ""
                    self._add((here.agent_id, id_), Step(name, text, "refused", depth))
            case ToolStarted(tool_use_id=id_, name=name, title=title):
                self.calls += 1
                self._waits_for = ""
                self._end((here.agent_id, id_), "failed")  # ends the first attempt of a retried call
                self._add((here.agent_id, id_), Step(name, title[:MAX_TEXT_CHARS], "runs", depth))
            case ToolFinished(tool_use_id=id_, is_error=is_error):
                self._end((here.agent_id, id_), "failed" if is_error else "done")
            case ToolResultMessage(tool_use_id=id_):  # a call that could not be tried has no other event
                self._wanted.pop((here.agent_id, id_), None)
            case RetryScheduled(attempt=attempt, reason=reason):
                self._waits_for = f"try {attempt} follows: {reason}"[:MAX_TEXT_CHARS]
            case Waiting(reason=reason):
                self._waits_for = reason[:MAX_TEXT_CHARS]
            case ReplyStarted() if self._waits_for:
                self._waits_for = ""
            case _:
                return False
        return True

    def wants(self, tool_use_id: str) -> bool:
        """Return True if a call with this id waits for a decision, its own or one of its subagents'."""
        return any(id_ == tool_use_id for _, id_ in self._wanted)

    def only_waits(self, asked_about: Collection[str]) -> bool:
        """Return True if it only waits for the user's answers about its calls."""
        is_asked = any(id_ in asked_about for _, id_ in self._wanted)
        return is_asked and all(step.state != "runs" for _, step in self._steps)

    def steps(self, most: int, asked_about: Collection[str], *, has_words: bool) -> Sequence[Step]:
        """Return the newest steps, the newest last; those that wait for the user or the model are at the end."""
        waiting = [Step("", self._waits_for, "waits")] if self._waits_for else []
        waiting += [step for (_, id_), step in self._wanted.items() if id_ in asked_about]
        done = [step for _, step in self._steps if has_words or step.state != "said"]
        return [*done, *waiting][-most:] if most > 0 else []

    def _take_reply(self, agent_id: str, reply: AssistantMessage, depth: int) -> None:
        self.rounds += depth == 0
        self._usage += reply.usage
        self._waits_for = ""
        if said := reply.text[: MAX_TEXT_CHARS * 4].strip():
            self._add((agent_id, ""), Step("", said[:MAX_TEXT_CHARS], "said", depth))
        for use in reply.tool_uses[:_MAX_WANTED]:
            step = Step(use.name[:MAX_TEXT_CHARS], title_of(use)[:MAX_TEXT_CHARS], "asks", depth)
            self._wanted[agent_id, use.id] = step
        while len(self._wanted) > _MAX_WANTED:
            self._wanted.pop(next(iter(self._wanted)))

    def _add(self, key: _Key, step: Step) -> None:
        self._steps.append((key, step))

    def _runs(self, key: _Key) -> bool:
        return any(known == key and step.state == "runs" for known, step in self._steps)

    def _end(self, key: _Key, state: StepState) -> None:
        for known, step in reversed(self._steps):
            if known == key and step.state == "runs":
                step.state = state
                return


MAX_ROWS, MAX_ROWS_EXPANDED = 12, 24
"""Most rows of all subagents together."""
_FOLDED_STEPS, _EXPANDED_STEPS = 3, 20
"""Most steps shown of one subagent."""
_INDENT = "    "
_MARKS: Mapping[StepState, tuple[str, Role]] = {
    "asks": ("?", "question"),
    "runs": ("·", "accent"),
    "done": ("●", "good"),
    "failed": ("✗", "bad"),
    "refused": ("✗", "bad"),
    "said": ("“", "dim"),
    "waits": ("…", "warn"),
}
_BEHIND: Mapping[StepState, str] = {"asks": " waits for your answer", "refused": " was not allowed"}

SubagentState: TypeAlias = Literal["runs", "done", "failed"]


@dataclass(frozen=True, slots=True)
class RunningSubagent:
    """A subagent with a row."""

    name: str
    """Name of the tool that runs it."""
    title: str
    elapsed_s: float
    progress: SubagentProgress
    state: SubagentState = "runs"
    agent: Role | None = None
    """Colour of its kind, if any."""


def subagent_rows(
    running: Sequence[RunningSubagent],
    asked_about: Collection[str],
    now_s: float,
    width: int,
    theme: Theme,
    *,
    is_expanded: bool = False,
) -> list[str]:
    """Return the rows of all subagents, the oldest first; there are at most `MAX_ROWS` or `MAX_ROWS_EXPANDED`."""
    if not running:
        return []
    room = MAX_ROWS_EXPANDED if is_expanded else MAX_ROWS
    shown, hidden = _with_row(running, room)
    working = sum(one.state == "runs" for one in shown)
    room_for_steps = (room - len(shown) - bool(hidden)) // max(working, 1)
    most = min(room_for_steps, _EXPANDED_STEPS if is_expanded else _FOLDED_STEPS)
    rows: list[str] = []
    for one in shown:
        is_over = one.state != "runs"
        mark = end_mark(one.state == "failed", theme) if is_over else theme.paint("accent", spinner(now_s, theme))
        rows.append(call_line(mark, one.name, one.title, _counts(one, width), width, theme, agent=one.agent))
        steps = () if is_over else one.progress.steps(most, asked_about, has_words=is_expanded)
        rows += [step_row(step, width, theme) for step in steps]
    return [*rows, theme.paint("dim", cut(_told_of(hidden), width))] if hidden else rows


def _with_row(
    running: Sequence[RunningSubagent], room: int
) -> tuple[Sequence[RunningSubagent], Sequence[RunningSubagent]]:
    """Return the subagents that get a row, in order, and the others; working ones are preferred."""
    if len(running) <= room:
        return running, ()
    by_importance = sorted(range(len(running)), key=lambda index: running[index].state != "runs")
    kept = set(by_importance[: room - 1])
    hidden = [one for index, one in enumerate(running) if index not in kept]
    return [running[index] for index in sorted(kept)], hidden


def _told_of(hidden: Sequence[RunningSubagent]) -> str:
    working = sum(one.state == "runs" for one in hidden)
    over = len(hidden) - working
    if not working:
        return f"… {over:,} more {'subagent has' if over == 1 else 'subagents have'} ended"
    said = f"… {working:,} more {'subagent works' if working == 1 else 'subagents work'}"
    return f"{said}, {over:,} ended" if over else said


def step_row(step: Step, width: int, theme: Theme) -> str:
    """Return the row of one step of a subagent."""
    mark, role = _MARKS[step.state]
    behind = _BEHIND.get(step.state, "")
    said = " ".join(part for part in (clean_line(step.name), clean_line(step.text)) if part)
    indent = _INDENT + "  " * step.depth
    room = max(width - len(indent) - 2 - len(behind), 1)
    painted = "dim" if step.state not in ("asks", "waits") else role
    return cut(f"{indent}{theme.paint(role, mark)} {theme.paint(painted, cut(said, room) + behind)}", width)


def _counts(one: RunningSubagent, width: int) -> str:
    progress = one.progress
    parts = [
        (_counted(progress.rounds, "round"), 3),
        (_counted(progress.calls, "tool call"), 2),
        (_counted(progress.tokens, "token"), 1),
        (spoken_s(one.elapsed_s) if one.elapsed_s >= 1 else "", 0),
    ]
    beside = width - cell_width(clean_line(f"{one.name} {one.title}")) - len("* ") - len(" ")
    text = fit_parts([(text, rank) for text, rank in parts if text], max(beside, width // 3), " · ")
    return f" {text}" if text else ""


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}" if count else ""
