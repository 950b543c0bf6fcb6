"""A turn as text: answers as they arrive, a line for each other event, and the last turns of a conversation.

Also amounts of time and money in words.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from panpan.cli_kit.failures import StdoutWriter
from panpan.session.context_usage import BYTES_PER_TOKEN
from panpan.session.descriptions import compaction_lines
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, without_controls
from panpan.types.content import (
    ChecklistDisplay,
    DiffDisplay,
    FileDiff,
    PlanDisplay,
    RejectedDisplay,
    SummaryDisplay,
    TableDisplay,
    TextBlock,
    TextDisplay,
    ThinkingBlock,
    ToolUseBlock,
    checklist_counts,
)
from panpan.types.dataclass import dataclass
from panpan.types.events import (
    BlockFinished,
    BlockStarted,
    Compacted,
    Event,
    PermissionDecided,
    ReplyStarted,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolStarted,
    TurnEnded,
    Waiting,
    files_in_short,
)
from panpan.types.messages import (
    AssistantMessage,
    Message,
    SystemReminder,
    ToolResultMessage,
    Usage,
    UserMessage,
    parse_task_cause,
)


class WaitingTime:
    """Total time in which at least one question was open.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open = 0
        self._since_s = 0.0
        """Time of the first of the open questions."""
        self._before_s = 0.0
        """Seconds of the questions that were answered before."""

    @property
    def seconds(self) -> float:
        return self._before_s + (self._clock() - self._since_s if self._open else 0.0)

    @property
    def answered_s(self) -> float:
        """Seconds so far, without the open questions."""
        return self._before_s

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time in the block; the common time of overlapping blocks counts once."""
        if not self._open:
            self._since_s = self._clock()
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._before_s += self._clock() - self._since_s


SHOWN_FROM_S = 1.0
"""A shorter wait is not mentioned."""


def spoken_duration(duration_s: float, waited_s: float) -> str:
    """Return the duration of a turn without waiting for the user, and that waiting if it was long enough to mention.

    Args:
        duration_s: Whole duration of the turn.
        waited_s: Part of it in which a question was open.
    """
    answers = f" (and {waited_s:.0f} s for your answers)" if waited_s >= SHOWN_FROM_S else ""
    return f"{max(duration_s - waited_s, 0.0):.1f} s{answers}"


def shown_cost(known_usd: float, *, is_whole: bool, is_estimated: bool) -> str:
    """Return an amount with four decimals, or its known part if some prices are unknown.

    Args:
        known_usd: US dollars of all replies whose price is known.
        is_whole: True if every price is known.
        is_estimated: True if a part of the amount is an estimate.
    """
    amount = cost_in_short(known_usd, is_estimated=is_estimated)
    if is_whole:
        return amount
    return f"at least {amount}; a price is not known" if known_usd else "price not known"


def cost_in_short(usd: float, *, is_estimated: bool, decimals: int = 4) -> str:
    """Return an amount such as `$0.0123`, or `~$0.0123` if a part of it is an estimate."""
    return f"{'~' if is_estimated else ''}${usd:.{decimals}f}"


def _counted(tokens: int) -> str:
    """Return a number of tokens such as `912`, `5.2k` or `1.3M`."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size * 0.99995:  # 999,950 are 1.0M and not 1000.0k
            return f"{tokens / size:.1f}{unit}"
    return str(tokens)


def tokens_in_short(usage: Usage, sent: str = "", written: str = "") -> str:
    """Return the uncached input tokens and the output tokens, each followed by its word; empty if there are none."""
    if not usage.context_tokens:
        return ""
    return f"↑ {_counted(usage.uncached_tokens)}{sent} ↓ {_counted(usage.output_tokens)}{written}"


def turn_summary(event: TurnEnded, waited_s: float) -> Sequence[tuple[str, int]]:
    """Return the parts of a turn's summary, each with its rank; the highest rank is left out first.

    Files that a program can make again, such as caches, are not mentioned, nor is a folder alone.
    """
    usage, cost = event.usage, event.cost_usd
    sent = usage.uncached_tokens + usage.cache_read_input_tokens
    own = [change for change in event.files if not change.is_generated]
    parts = (
        (tokens_in_short(usage, " new", " out"), 4),
        (f"{usage.cache_read_input_tokens / sent:.0%} cached" if usage.cache_read_input_tokens else "", 5),
        (spoken_duration(event.duration_s, waited_s), 0),
        ("1 round" if event.rounds == 1 else f"{event.rounds} rounds", 3),
        (cost_in_short(cost, is_estimated=event.is_cost_estimated) if cost else "", 2),
        (f"{event.unasked} command{'s' * (event.unasked != 1)} without a question" if event.unasked else "", 2),
        ("" if all(change.is_folder for change in own) else files_in_short(own), 1),
    )
    return [part for part in parts if part[0]]


def verification_lines(event: TurnEnded) -> Sequence[str]:
    """Return the evidence for the answer of a turn, and the problem with it if there is one; safe for a terminal."""
    if event.verification is None:
        return ()
    problem = event.verification.problem
    return [clean_line(line) for line in (event.verification.line, f"! {problem}" if problem else "") if line]


class TokensSoFar:
    """Counts the tokens of a running turn and its subagents; the tokens of arriving output are an estimate."""

    def __init__(self) -> None:
        self._of_replies = self._arriving = Usage()
        self._arrived_bytes = 0

    @property
    def usage(self) -> Usage:
        written = max(self._arriving.output_tokens, self._arrived_bytes // BYTES_PER_TOKEN)
        return self._of_replies + self._arriving.model_copy(update={"output_tokens": written})

    def follow(self, event: Event) -> None:
        """Count an event of the turn."""
        told = event.innermost.event if isinstance(event, SubagentEvent) else event
        if isinstance(told, AssistantMessage):
            self._of_replies += told.usage
        match event:
            case ReplyStarted(usage=usage):
                self._arriving, self._arrived_bytes = usage, 0
            case AssistantMessage() | RetryScheduled():
                self._arriving, self._arrived_bytes = Usage(), 0
            case TextDelta(text=text) | ThinkingDelta(text=text) | ToolInputDelta(json=text):
                self._arrived_bytes += len(text.encode(errors="replace"))
            case _:
                pass


# The part of a reply's text that the reader has not seen yet.
#
# A reply that failed half-way starts again from its beginning, and mostly says the same. A beginning that was shown
# already is not shown twice. If the new reply differs, it is shown from its beginning.


@dataclass(frozen=True, slots=True)
class UnseenText:
    """Unseen text that a delta adds."""

    text: str
    is_other: bool = False
    """True if the text does not continue the shown one."""


class UnseenTextTracker:
    """Follows the text of one reply over all its attempts."""

    def __init__(self) -> None:
        self._said: list[str] = []
        """Text of the arriving attempt."""
        self._known = ""
        """Text that failed attempts have shown."""
        self._reached = 0
        """Characters of `_known` that the arriving attempt has repeated so far."""

    @property
    def may_go_on(self) -> bool:
        """True if a failed attempt was shown and the new one has not passed it."""
        return self._reached < len(self._known)

    def add(self, text: str) -> UnseenText:
        self._said.append(text)
        if not self.may_go_on:
            return UnseenText(text)
        known = self._known[self._reached : self._reached + len(text)]
        if text[: len(known)] != known:
            self._known, self._reached = "", 0
            return UnseenText("".join(self._said), is_other=True)
        self._reached += len(known)
        return UnseenText(text[len(known) :])

    def failed(self) -> None:
        """Discard the arriving attempt; another one follows."""
        self._known, self._reached = "".join(self._said) + self._known[self._reached :], 0
        self._said.clear()

    def is_whole(self) -> None:
        """Forget the reply: it is complete, or given up."""
        self._said.clear()
        self._known, self._reached = "", 0


class AnswerText:
    """Writes replies to standard output, without escape sequences.

    Args:
        out: Standard output.
    """

    def __init__(self, out: StdoutWriter) -> None:
        self._out = out
        self._fresh = UnseenTextTracker()
        self._is_cut = False
        """True if the next text continues the last one."""
        self._ends_line = True

    async def follow(self, event: Event) -> None:
        match event:
            case ReplyStarted() | BlockStarted(kind="text"):
                await self.end_line()
            case TextDelta(text=text):
                await self._add(text)
            case RetryScheduled():
                self._fresh.failed()
            case AssistantMessage():
                self._fresh.is_whole()
                self._is_cut = event.is_to_be_continued
            case _:
                pass

    async def add_whole(self, text: str) -> None:
        """Write a complete text on lines of its own."""
        await self.break_line()
        await self._out.write(f"{self._cleaned(text)}\n")

    async def end(self) -> None:
        """End the turn: no reply is continued, and the next output begins on a line of its own."""
        self._fresh.is_whole()
        self._is_cut = False
        await self.break_line()

    async def end_line(self) -> None:
        """Begin a new line for the next output, unless a failed or cut reply may continue."""
        if not self._fresh.may_go_on and not self._is_cut:
            await self.break_line()

    async def break_line(self) -> None:
        """Begin a new line for the next output."""
        if not self._ends_line:
            self._ends_line = True
            await self._out.write("\n")

    def note_other(self) -> None:
        """Put what comes next on a line of its own: something else was written to the terminal."""
        self._ends_line = False

    async def make_room(self) -> None:
        """Begin a new line for a note; without a terminal, an answer that may continue stays in one piece."""
        await (self.break_line() if self._out.is_terminal else self.end_line())

    async def _add(self, text: str) -> None:
        fresh = self._fresh.add(text)
        if fresh.is_other:
            await self.end_line()
        if fresh.text:
            self._is_cut = False
            self._ends_line = fresh.text.endswith("\n")
            await self._out.write(self._cleaned(fresh.text))

    def _cleaned(self, text: str) -> str:
        """Return the text without escape sequences: a pipe may lead to a terminal, and a file may be shown on one."""
        return clean_for_terminal(text) if self._out.is_terminal else without_controls(text)


def note_on_end(reply: AssistantMessage) -> str | None:
    """Return one line for the user if the reply that ended a turn was cut off, else None."""
    if reply.stop_reason == "max_tokens" and not reply.tool_uses:
        return "the answer is cut off: the model reached the limit on the length of its replies"
    return None


def title_of(use: ToolUseBlock) -> str:
    """Return the main argument as the model wrote it: the name of a subagent, else the first text."""
    if names_agent(use):
        kind, description = use.input.get("subagent_type"), use.input.get("description")
        return ": ".join(part for part in (kind, description) if isinstance(part, str) and part)
    return next((value for value in use.input.values() if isinstance(value, str)), "")


def names_agent(use: ToolUseBlock) -> bool:
    """Return True if a call that never ran would have started a subagent, judged by its arguments."""
    return "subagent_type" in use.input or {"description", "prompt"} <= use.input.keys()


def counts_text(file: FileDiff) -> str:
    """Return the numbers of added and removed lines, such as "+3 -1", or the reason for having none."""
    if file.added or file.removed:
        extent = extent_text(file)
        return f"+{file.added} -{file.removed}{extent and f' ({extent})'}"
    return "empty" if file.is_new or file.is_deleted else "no line changed"


def extent_text(file: FileDiff) -> str:
    """Return the extent of a large replacement, such as "replaces all of 900 lines"; empty if it is small."""
    which = "all" if file.removed == file.replaced_of else f"{file.removed:,}"
    return f"replaces {which} of {file.replaced_of:,} lines" if file.replaced_of else ""


def diff_text(diff: str) -> Sequence[str]:
    """Return the lines of a unified diff from its first hunk on; a heading names the files."""
    lines = diff.split("\n")
    begin = next((index for index, line in enumerate(lines) if line.startswith("@@")), len(lines))
    return lines[begin:-1] if lines[-1] == "" else lines[begin:]


MAX_LINE_CHARS = 160
"""Most characters of an argument or an error in one line."""
ERROR_HEAD, ERROR_TAIL = 3, 6
"""Lines of an error: its beginning says what was tried, its end what went wrong."""


class ToolLines:
    """Makes the lines of a turn; a result names its call if it does not follow it directly."""

    def __init__(self) -> None:
        self._waiting: dict[str, ToolUseBlock] = {}
        """Calls that have not started; a refused one never starts, and gets its line with its result."""
        self._running: dict[str, str] = {}
        """Tool names of the started calls, by id; for a subagent, its title."""
        self._subagents: set[str] = set()
        """Ids of the started calls that run a subagent."""
        self._beside: set[str] = set()
        """Ids of the calls of subagents that ran at the same time."""
        self._newest_id = ""

    def lines(self, event: Event) -> Sequence[str]:
        """Return the lines for `event`, safe to print on a terminal; most events have none."""
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
        """Return the line of a subagent's call, denial or retry; it names the subagent if several run.

        The subagent's text is not shown: only its parent answers the user.
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
    return f"● {_one_line(f'{use.name} {title_of(use)}')}"


def _result_lines(result: ToolResultMessage, whose: str) -> Sequence[str]:
    if not result.is_error or isinstance(result.display, RejectedDisplay):
        return (f"  └ {whose}{_result_text(result)}",)
    why = [result.display.text] if isinstance(result.display, SummaryDisplay) else []
    lines = [_one_line(line) for line in (*why, *result.text_for_people.splitlines()) if line.strip()]
    hidden = len(lines) - ERROR_HEAD - ERROR_TAIL
    if hidden > 1:  # the note would take the place of one line
        lines = [*lines[:ERROR_HEAD], f"… {hidden} more lines", *lines[-ERROR_TAIL:]]
    first, *others = lines or [""]
    return (f"  └ {whose}error: {first}".rstrip(), *(f"    {line}" for line in others))


def _result_text(result: ToolResultMessage) -> str:
    match result.display:
        case DiffDisplay(files=files, notes=notes):
            changed = ", ".join(f"{_one_line(file.path)} {counts_text(file)}" for file in files)
            return "; ".join([changed, *map(_one_line, notes)])
        case SummaryDisplay(text=text) | RejectedDisplay(text=text) | PlanDisplay(summary=text):
            return _one_line(text)
        case ChecklistDisplay(todos=todos):
            return checklist_counts(todos)
        case TextDisplay():
            return _one_line(result.display.text)
        case TableDisplay(rows=rows):
            return f"{len(rows):,} row{'s' if len(rows) != 1 else ''}"
        case None:
            lines = result.text_for_people.splitlines()
            return _one_line(result.text_for_people) if len(lines) == 1 else f"{len(lines)} lines"


def _one_line(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"


LAST_TURNS = 3
MAX_CHARS = 20_000
"""Most characters of prompts and replies that are shown again, unless the newest message alone has more."""
_CHARS_OF_RESULT = 500
"""Characters that a result counts for, since only a few lines of it are shown."""


def beginning_of_last_turns(messages: Sequence[Message]) -> int:
    """Return the index of the first message that is shown; a reply is never parted from its results."""
    begin, turns, chars = len(messages), 0, 0
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        chars += _chars(message)
        if chars > MAX_CHARS and begin < len(messages):
            break
        if isinstance(message, UserMessage | AssistantMessage):
            begin = index
        if isinstance(message, UserMessage):
            turns += 1
            if turns == LAST_TURNS:
                break
    return begin


def earlier(begin: int, how: str) -> str:
    """Return the sentence for the messages that are not shown again.

    Args:
        begin: Number of these messages, 1 or more.
        how: Way to see them, such as "Ctrl+O shows them".
    """
    return f"… {begin:,} earlier message{'s' * (begin != 1)}: {how}"


def was_interrupted(event: Event) -> bool:
    """Return True if the user interrupted this reply of a past turn; a running turn reports it at its end."""
    return isinstance(event, AssistantMessage) and event.stop_reason == "interrupted"


def task_end_told(event: Event) -> str:
    """Return the line for a reminder about the end of a background task; empty for any other event.

    Only past turns need it: in a running turn, faces see the ends of tasks themselves.
    """
    if not isinstance(event, SystemReminder) or (told := parse_task_cause(event.cause)) is None or told[1]:
        return ""
    return clean_line(". ".join(event.text.split("\n")[:2]))


def past_events(messages: Sequence[Message]) -> Iterator[Event]:
    """Yield the events that a face needs to show messages again."""
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from _block_events(message)
        if not isinstance(message, SystemReminder) or task_end_told(message):
            yield message


def _block_events(reply: AssistantMessage) -> Iterator[Event]:
    for index, block in enumerate(reply.content):
        match block:
            case TextBlock(text=text):
                yield BlockStarted(index, "text")
                yield TextDelta(index, text)
                yield BlockFinished(index, block)
            case ThinkingBlock(thinking=thinking):
                yield BlockStarted(index, "thinking")
                yield ThinkingDelta(index, thinking)
                yield BlockFinished(index, block)
            case _:
                pass


def _chars(message: Message) -> int:
    match message:
        case ToolResultMessage():
            return _CHARS_OF_RESULT
        case UserMessage() | AssistantMessage():
            return len(message.text)
        case SystemReminder():
            return 0
