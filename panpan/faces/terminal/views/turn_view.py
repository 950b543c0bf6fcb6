"""Shows a turn: the prompt, the reply, its tools, waiting and retries, and its summary."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from time import monotonic
from typing import Protocol

from panpan.core.conversation import Conversation
from panpan.faces.terminal.rendering.cells import Canvas, cut, fit_parts, markdown_rows, say, wrap_text
from panpan.faces.terminal.rendering.messages import spinner, user_message_lines
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.reply_view import ReplyView
from panpan.faces.terminal.views.tools_view import ToolsView
from panpan.faces.terminal.views.transcript import Transcript
from panpan.faces.turn_text import (
    TokensSoFar,
    WaitingTime,
    beginning_of_last_turns,
    cost_in_short,
    earlier,
    past_events,
    task_end_told,
    tokens_in_short,
    turn_summary,
    verification_lines,
    was_interrupted,
)
from panpan.session.descriptions import compaction_lines
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, printable
from panpan.types.content import ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    CommandRan,
    Compacted,
    Event,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolProgress,
    TurnEnded,
    Waiting,
)
from panpan.types.messages import AssistantMessage, Message, UserMessage
from panpan.types.permission import PermissionQuestion
from panpan.version import __version__

PIECE_CHARS = 1_000
"""Characters shown in one step."""
CHARS_AFTER_STOP = 4_000
"""Most characters still shown after the turn was stopped; usually the whole rest."""


class EventRenderer(Protocol):
    """Shows events."""

    def show(self, event: Event) -> None: ...

    async def drain(self) -> None: ...


class PacedRenderer:
    """Shows the events of one turn, and lets the screen catch up in between."""

    def __init__(self, view: EventRenderer, is_stopped: Callable[[], bool]) -> None:
        self._view = view
        self._is_stopped = is_stopped
        self._since_pause = 0
        """Characters shown since the last pause."""
        self._may_follow = CHARS_AFTER_STOP
        self.left_out = 0
        """Characters of the answer that were not shown because the turn was stopped."""

    async def show(self, event: Event) -> None:
        """Show an event: a long text in pieces, and only a part of it once the turn is stopped."""
        for piece in _pieces(event):
            size = _size(piece)
            if size and self._is_stopped():
                self._may_follow -= size
                if self._may_follow < 0:
                    self.left_out += size if isinstance(piece, TextDelta) else 0
                    continue
            self._view.show(piece)
            self._since_pause += size
            if not size or self._since_pause >= PIECE_CHARS:
                self._since_pause = 0
                await self._view.drain()


def _size(event: Event) -> int:
    """Return the number of characters that an event adds; 0 for events other than deltas and progress."""
    match event.innermost.event if isinstance(event, SubagentEvent) else event:
        case TextDelta(text=text) | ThinkingDelta(text=text) | ToolProgress(text=text):
            return len(text)
        case ToolInputDelta(json=text) if isinstance(event, SubagentEvent):
            return len(text)
        case _:
            return 0


def _pieces(event: Event) -> Iterator[Event]:
    if isinstance(event, TextDelta | ThinkingDelta) and len(event.text) > PIECE_CHARS:
        for at in range(0, len(event.text), PIECE_CHARS):
            yield replace(event, text=event.text[at : at + PIECE_CHARS])
    else:
        yield event


_MAX_REASON_CHARS = 200
"""Most characters of the reason for a retry."""


@dataclass(frozen=True, slots=True)
class TurnCallbacks:
    """Callbacks of a turn: its begin and end, and facts from outside of it."""

    has_begun: Callable[[], None] = lambda: None
    is_over: Callable[[float], None] = lambda duration_s: None
    """Called with the duration of the turn in seconds."""
    is_asking: Callable[[], bool] = lambda: False
    """Returns True while the turn waits for an answer of the user."""
    can_move: Callable[[], bool] = lambda: False
    """Returns True while a running call can be moved to the background."""
    doing: Callable[[], str] = lambda: ""
    """Returns the model's own description of its current step, or ""."""
    asked_about: Callable[[], Collection[str]] = tuple
    """Returns the ids of the calls that wait for the user's permission."""
    spent_usd: Callable[[], float] = lambda: 0.0
    """Returns the known cost of the session so far in US dollars."""


class _SettlingCanvas:
    """Canvas that settles the calls that only looked before it shows anything else; implements `Canvas`."""

    def __init__(self, canvas: Canvas, settle: Callable[[], None]) -> None:
        self._canvas = canvas
        self._settle = settle

    @property
    def theme(self) -> Theme:
        return self._canvas.theme

    @property
    def width(self) -> int:
        return self._canvas.width

    def show(self, *lines: str) -> None:
        self._settle()
        self._canvas.show(*lines)

    def refresh(self) -> None:
        self._canvas.refresh()

    async def drain(self) -> None:
        await self._canvas.drain()


class TurnView:
    """Shows the turns of a session.

    Args:
        canvas: Shows the rows.
        conversation: The session's conversation.
        callbacks: Callbacks of the turns.
        waiting: Time spent waiting for the user, which is not counted as the turn's.
        subagents: Past turns of subagents; None if they are not known.
        colour_of: Returns the colour of a kind of subagent, or "".
        count_label_of: Returns the verb and noun that count a call that only looks; None for any other.
    """

    def __init__(
        self,
        canvas: Canvas,
        conversation: Conversation,
        callbacks: TurnCallbacks,
        *,
        waiting: WaitingTime,
        subagents: PastSubagents | None = None,
        colour_of: Callable[[str], str] = lambda kind: "",
        count_label_of: Callable[[ToolUseBlock], tuple[str, str] | None] = lambda use: None,
    ) -> None:
        self._callbacks = callbacks
        self._waiting = waiting
        self._waited_before_s = 0.0
        """Time spent waiting for the user before the turn began."""
        self._transcript = Transcript(conversation, subagents)
        self._tools = ToolsView(canvas, monotonic, self._transcript, callbacks.asked_about, colour_of, count_label_of)
        self._canvas = _SettlingCanvas(canvas, self._tools.settle)
        self._reply = ReplyView(self._canvas, self._transcript, self._tools.holds)
        self._began_s: float | None = None
        """Start of the turn; None while no turn runs."""
        self._tokens = TokensSoFar()
        self._waits_for = ""
        self._retry: RetryScheduled | None = None
        self._retry_at_s = 0.0
        self._is_arriving = False
        """True while a reply arrives."""
        self._broken = 0
        """Number of the turn's replies that broke off."""
        self._spent_before_usd = 0.0

    @property
    def is_in_retry_pause(self) -> bool:
        return self._retry is not None and monotonic() < self._retry_at_s

    def is_of_turn(self, question: PermissionQuestion) -> bool:
        """Return True if the question is about a call of the turn or of a subagent that the turn waits for."""
        return not question.agent or self._tools.is_wanted(question.tool_use_id)

    @property
    def is_moving(self) -> bool:
        """True if its rows change over time; they do not while it only waits for the user."""
        return self._began_s is not None and (not self._callbacks.is_asking() or self._tools.are_moving)

    @property
    def runs_tools(self) -> bool:
        return self._tools.are_running

    @property
    def duration_s(self) -> float:
        """Seconds that the turn has taken so far, without waiting for the user; 0 while no turn runs."""
        return 0.0 if self._began_s is None else monotonic() - self._began_s - self._waited_s

    @property
    def _waited_s(self) -> float:
        return self._waiting.seconds - self._waited_before_s

    async def show_past(self, messages: Sequence[Message]) -> None:
        """Show the last turns of a resumed conversation, and how to see the earlier ones."""
        begin = beginning_of_last_turns(messages)
        if begin:
            say(self._canvas, earlier(begin, "Ctrl+O shows them"), "dim")
        shower = PacedRenderer(self, lambda: False)
        for event in past_events(messages[begin:]):
            if line := task_end_told(event):
                self._canvas.show("")
                say(self._canvas, line, "dim")
            await shower.show(event)
            if was_interrupted(event):
                say(self._canvas, "[Interrupted]", "warn")
        self._finish()

    def begin(self, prompt: UserMessage | None) -> None:
        """Begin a turn; None: the model is woken without a prompt."""
        self._began_s, self._waited_before_s = monotonic(), self._waiting.seconds
        self._tokens = TokensSoFar()
        self._broken, self._is_arriving, self._spent_before_usd = 0, False, self._callbacks.spent_usd()
        if prompt is not None:
            self._show_prompt(prompt)
        self._callbacks.has_begun()

    def prompt_came(self, prompt: UserMessage) -> None:
        """Do nothing: all prompts are shown when the model has them."""

    def show(self, event: Event) -> None:
        """Show an event of the turn."""
        self._reply.follow(event)
        self._tools.follow(event)
        self._tokens.follow(event)
        match event:
            case UserMessage():
                self._show_prompt(event)
            case Waiting(reason=reason):
                self._waits_for = reason
            case ReplyStarted():
                self._waits_for, self._retry, self._is_arriving = "", None, True
            case AssistantMessage():
                self._is_arriving = False
            case (
                PermissionDecided(saved_rule=rule)
                | SubagentEvent(innermost=SubagentEvent(event=PermissionDecided(saved_rule=rule)))
            ) if rule:
                say(self._canvas, f"✓ kept for this project: {rule}", "dim")
            case RetryScheduled(delay_s=delay_s):
                self._retry, self._retry_at_s = event, monotonic() + delay_s
                self._broken, self._is_arriving = self._broken + self._is_arriving, False
            case Compacted(compaction=compaction):
                self._waits_for = ""
                for line in compaction_lines(compaction):
                    say(self._canvas, f"… {clean_line(line)}", "dim")
            case CommandRan(text=text):
                say(self._canvas, text)
            case TurnEnded():
                self._show_end(event)
            case _:
                pass

    async def drain(self) -> None:
        await self._canvas.drain()

    def fail(self, message: str) -> None:
        """Show the error that ended the turn."""
        self._finish()
        self._broken, self._is_arriving = self._broken + self._is_arriving, False
        say(self._canvas, f"✗ {message}", "bad")

    def note(self, text: str) -> None:
        say(self._canvas, text, "warn")

    def keep_plan(self, text: str) -> None:
        """Show a plan that was neither approved nor sent back, so that it does not vanish with its question."""
        say(self._canvas, "The plan was not approved:", "warn")
        rows = markdown_rows(text, self._canvas.width - 2, self._canvas.theme)
        self._canvas.show(*(f"  {row}".rstrip(" ") for row in rows))

    def end(self) -> None:
        """End the turn, however it ended."""
        self._finish()
        if self._broken:
            usd = self._callbacks.spent_usd() - self._spent_before_usd
            cost = f": {cost_in_short(usd, is_estimated=True)} in this turn" if usd else ""
            times = "once" if self._broken == 1 else f"{self._broken} times"
            say(self._canvas, f"the reply broke off {times}; each try is paid{cost}", "dim")
        duration_s, self._began_s = self.duration_s, None
        self._callbacks.is_over(duration_s)
        self._canvas.refresh()

    def toggle_expanded(self) -> bool:
        """Show more or fewer rows of running work; return True if this changes the display."""
        if not (self._tools.can_unfold or self._reply.is_thinking):
            return False
        is_expanded = not self._tools.is_expanded
        self._tools.expand(is_on=is_expanded)
        self._reply.expand(is_on=is_expanded)
        self._canvas.refresh()
        return True

    def transcript(self, on_prompt: Callable[[], None]) -> Iterable[str]:
        return self._transcript.rows(self._canvas.theme, on_prompt)

    def live_lines(self, width: int) -> Sequence[str]:
        if self._began_s is None:
            return ()
        looked, said = self._tools.looked_lines(width), self._reply.live_lines(width)
        return [*looked, *said, *self._tools.live_lines(width), "", *self._activity(width)]

    def _activity(self, width: int) -> Sequence[str]:
        theme, now_s = self._canvas.theme, monotonic()
        if self._callbacks.is_asking():  # the question itself names its keys
            parts = [("… waiting for your answer", 0), *([("the others go on", 1)] if self._tools.are_moving else [])]
            return [_row(parts, width, theme)]
        if self._retry is not None and now_s < self._retry_at_s:
            reason = clean_line(self._retry.reason[:_MAX_REASON_CHARS])
            pause = f"! try {self._retry.attempt} in {self._retry_at_s - now_s:.0f} s"
            rows = wrap_text(f"{pause} · R retries now · esc interrupts · {reason}", max(width, 2))
            return [theme.paint("warn", row) for row in rows]
        waits_for = clean_for_terminal(self._waits_for).split("\n")[0]
        what = (
            waits_for
            or cut(self._callbacks.doing(), max(width // 2, 1))
            or ("running" if self._tools.are_running else "working")
        )
        parts = [(f"{spinner(now_s, theme)} {what} {self.duration_s:.0f} s", 0)]
        if tokens := tokens_in_short(self._tokens.usage):
            parts.append((tokens, 4))
        parts.append(("esc interrupts", 1))
        if self._tools.can_unfold:
            parts.append((f"ctrl+o {'folds' if self._tools.is_expanded else 'expands'}", 2))
        if self._callbacks.can_move():
            parts.append(("ctrl+b background", 3))
        return [_row(parts, width, theme)]

    def _show_prompt(self, message: UserMessage) -> None:
        self._canvas.show("", *user_message_lines(message, self._canvas.width, self._canvas.theme))

    def _show_end(self, event: TurnEnded) -> None:
        self._finish()
        if event.is_interrupted:
            say(self._canvas, "[Interrupted]", "warn")
        if not event.rounds and not event.is_interrupted:  # the model was woken for nothing new
            return
        found = event.verification
        for line in verification_lines(event):
            say(self._canvas, line, "warn" if found is not None and (found.failed or found.unverified) else "dim")
        self._canvas.show(_row(turn_summary(event, self._waited_s), self._canvas.width, self._canvas.theme))

    def _finish(self) -> None:
        self._reply.end()
        self._tools.end()
        self._waits_for, self._retry = "", None


def _row(parts: Sequence[tuple[str, int]], width: int, theme: Theme) -> str:
    """Return the texts that fit, the highest ranks left out first; the last one left is cut."""
    said = fit_parts(parts, width, " · ") or cut(min(parts, key=lambda part: part[1])[0], width)
    return theme.paint("dim", said)


def greeting(session: Session, width: int, theme: Theme) -> Sequence[str]:
    """Return the rows for a session that has just been opened."""
    info = session.info
    count = len(session.conversation.messages)
    resumed = f"resumed after {count} message{'s' * (count != 1)}: " if count else ""
    title = f"{resumed}{session.title}" if session.title else resumed.removesuffix(": ")
    rows = [
        f"{theme.paint('accent', 'panpan')} {theme.paint('dim', f'{__version__} in {printable(str(info.cwd))}')}",
        theme.paint("dim", printable(info.choice)),
        theme.paint("dim", printable(title)),
    ]
    if session.model_note:
        rows.append(theme.paint("warn", printable(session.model_note)))
    if session.permission_mode != "default":  # which nobody may have set today
        rows.append(theme.paint("warn", f"permission mode: {session.permission_mode}"))
    return [part for row in rows if row for part in wrap_text(row, width)]
