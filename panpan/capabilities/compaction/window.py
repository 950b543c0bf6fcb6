"""Contents of a request: the size of each part, where it may be cut, and why it stays too long."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from panpan.capabilities.compaction.auto_compaction import Limits
from panpan.capabilities.compaction.summary import summary_in_reminder
from panpan.core.conversation import Conversation
from panpan.core.tool import Tool
from panpan.errors import ContextOverflowError
from panpan.session.context_usage import BYTES_PER_TOKEN, message_tokens, text_tokens, tool_tokens, used_tokens
from panpan.types.messages import (
    MEMORY,
    PLAN,
    PROJECT_CONTEXT,
    WORDS,
    AssistantMessage,
    Compaction,
    CompactionTrigger,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
)
from panpan.types.pattern import compile_late


class Window:
    """The request of a conversation without open calls, which is to become shorter."""

    def __init__(
        self, conversation: Conversation, limits: Limits, trigger: CompactionTrigger, tools: Iterable[Tool[Any]] = ()
    ) -> None:
        self.messages: Sequence[Message] = tuple(conversation.messages)
        self.size = Size(conversation)
        self.limits = limits
        self.trigger = trigger
        tools, told = list(tools), {tool.name for tool in conversation.tools}
        self.history_tool = next((tool.name for tool in tools if tool.shows_history and tool.name in told), "")
        """Name of the tool that shows what the model is not sent; empty: it has none."""
        self.answering = {tool.name for tool in tools if tool.asks_user}
        """Names of the tools whose results are the user's answers."""
        self.staying = {*self.answering, *(tool.name for tool in tools if tool.stays_in_context)}
        """Names of the tools whose results stay, however long they are."""
        self._before = conversation.compactions[-1] if conversation.compactions else None

    @property
    def room_tokens(self) -> int:
        return self.limits.room_tokens(self.size.fixed_tokens)

    def chars(self, share: float) -> int:
        """Return the characters that fill a share of the room."""
        return round(self.room_tokens * share / self.size.factor * BYTES_PER_TOKEN)

    @cached_property
    def present(self) -> Compaction:
        """A compaction that changes nothing."""
        newest = next(message for message in reversed(self.messages) if not isinstance(message, ToolResultMessage))
        before = self._before
        return Compaction(
            trigger=self.trigger,
            up_to=newest.uuid,
            tokens_before=self.size.whole,
            tokens_after=self.size.whole,
            pinned=before.pinned if before is not None else (),
            added=before.added if before is not None else (),
            kept_from=before.kept_from if before is not None else None,
            notes=before.notes if before is not None else {},
        )

    def is_present(self, compaction: Compaction) -> bool:
        """True if a compaction changes nothing, however the estimates differ."""
        return _content(compaction) == _content(self.present)

    def start_of(self, compaction: Compaction) -> int:
        """Return the index of the oldest message that a compaction keeps."""
        kept_from = compaction.kept_from
        return next((index for index, message in enumerate(self.messages) if message.uuid == kept_from), 0)

    @cached_property
    def start(self) -> int:
        """Index of the oldest message that is sent as it is, or with a note."""
        return self.start_of(self.present)

    @cached_property
    def recent(self) -> int:
        """Index of the oldest of the newest messages, which stay in any case."""
        most = float(self.limits.recent_tokens)
        if self.trigger == "manual":  # the user asked, so drop most of it, however little there is
            most = min(most, self.size.of(self.messages[self.start :]) / 4)
        return start_of_recent(self.messages, self.start, most, self.size.of_one)

    @property
    def leaving(self) -> Sequence[Message]:
        """Messages that are sent as they are and need not stay."""
        return self.messages[self.start : self.recent]

    @property
    def to_summarise(self) -> Sequence[Message]:
        """The same, after the prompt of the running turn if that is older."""
        prompt = newest_prompt(self.messages)
        asked = [] if prompt is None or prompt >= self.start else [self.messages[prompt]]
        return [*asked, *self.leaving]

    @property
    def earlier_summary(self) -> str:
        return next(filter(None, map(summary_in_reminder, self.present.added)), "")


_SYSTEM, _TOOLS = "the system prompt", "the definitions of the tools"
_PROMPT, _EARLIER = "your newest message", "what you said before"
_RULES, _PLAN, _OTHER = "the project's context and rules", "the plan", "notes for the model"
_REMEMBERED = "what you said in your own words, to be remembered"
_OUTPUT, _REPLIES = "the newest output of tools", "what the model said"
_ADVICE = {
    _SYSTEM: "say less in it (--system-prompt, --append-system-prompt)",
    _TOOLS: "switch some off ([tools] enabled)",
    _PROMPT: "say less at once, or name files in place of their text (/rewind takes it back)",
    _EARLIER: "begin a new session with what still counts",
    _RULES: "make its AGENTS.md or CLAUDE.md shorter",
    _REMEMBERED: "begin a new session with what still counts",
    _PLAN: "make it shorter",
    _OUTPUT: "let the model read less at once",
}
"""Ways to make parts of a request smaller, for the user."""


_NUMBER = compile_late(r"(?<![\w.])\d{1,3}(?:[,_]\d{3})+(?![\w])|(?<![\w.])\d{4,9}(?!\w)")
_FAR_MORE = 1.5
"""Times our estimate from which the provider's count shows that the estimate is wrong."""


def explain_too_large(
    conversation: Conversation, window_tokens: int | None, refusal: ContextOverflowError | None
) -> str:
    """Return the message for the user about a conversation that nothing more can leave; None: it was not refused."""
    size, is_refused = Size(conversation), refusal is not None
    total: dict[str, float] = {}
    for part, tokens in _weighed(conversation, size):
        total[part] = total.get(part, 0.0) + tokens
    largest = max(total, key=lambda part: total[part])
    counts = [int(re.sub("[,_]", "", number)) for number in _NUMBER.findall(str(refusal or ""))]
    if (counted := max(counts, default=0)) > _FAR_MORE * size.whole:
        is_said = largest not in (_SYSTEM, _TOOLS)  # the provider can hardly mean these
        most_are = f", and most of them are {largest}" if is_said else ""
        advice = [
            _ADVICE.get(largest, "") if is_said else "",
            "/compact makes the conversation shorter",
            "choose a model with a larger window (/model)",
        ]
        return (
            f"the request is too long for the model's context window: the provider counts {counted:,} tokens"
            f"{most_are}; {', or '.join(filter(None, advice))}"
        )
    advice = [_ADVICE.get(largest, ""), "choose a model with a larger window (--model)"]
    is_window_sure = window_tokens is not None and (size.whole > window_tokens or not is_refused)
    if not is_window_sure:  # the real window must be smaller than the known one
        advice.append("say how large its window is ([compaction] window_tokens)")
    what = "is too long for the model's context window" if is_refused else "leaves too little room for the reply"
    most = f" of at most {window_tokens:,}" if is_window_sure else ""
    return (
        f"the request {what}, and nothing more can leave it: about {size.whole:,} tokens{most}, and about "
        f"{round(total[largest]):,} of them are {largest}; {', or '.join(filter(None, advice))}"
    )


def newest_prompt(messages: Sequence[Message]) -> int | None:
    """Return the index of the user's newest message."""
    for index in range(len(messages) - 1, -1, -1):
        if isinstance(messages[index], UserMessage):
            return index
    return None


Weigh: TypeAlias = Callable[[Message], float]
"""Returns the tokens of a message, about."""


def start_of_recent(messages: Sequence[Message], least: int, most_tokens: float, weigh: Weigh) -> int:
    """Return the start of the newest blocks that have `most_tokens` together, from index `least` on."""
    chosen = max(least, _start_of_newest(messages))
    size = sum(map(weigh, messages[chosen:]))
    end = chosen
    for start in range(chosen - 1, least - 1, -1):
        if isinstance(messages[start], ToolResultMessage):
            continue
        size += sum(map(weigh, messages[start:end]))
        if size > most_tokens:
            break
        chosen = end = start
    return chosen


def _start_of_newest(messages: Sequence[Message]) -> int:
    """Return the start of the part that the model has not answered yet, or of its answer if nothing came since."""
    prompts: list[int] = []
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, UserMessage):
            prompts.append(index)
        elif isinstance(message, AssistantMessage):
            is_open = index == len(messages) - 1 or bool(message.tool_uses)
            return prompts[0] if len(prompts) > 1 else index if is_open else index + 1
    return prompts[0] if len(prompts) > 1 else 0


_LEAST_FACTOR, _MOST_FACTOR = 0.5, 3.0


class Size:
    """Estimates tokens of one conversation's messages, scaled to the provider's counts."""

    def __init__(self, conversation: Conversation) -> None:
        fixed = text_tokens(conversation.system) + tool_tokens(conversation.tools)
        estimate = fixed + sum(map(message_tokens, conversation.sent))
        self.whole = used_tokens(conversation)
        """Tokens of the next request."""
        self.factor = min(_MOST_FACTOR, max(_LEAST_FACTOR, self.whole / max(1, estimate)))
        self.fixed_tokens = round(fixed * self.factor)
        """Tokens of the system prompt and the tools."""

    def of_one(self, message: Message) -> float:
        return message_tokens(message) * self.factor

    def of_text(self, text: str) -> float:
        return text_tokens(text) * self.factor

    def of(self, messages: Iterable[Message]) -> float:
        return sum(map(self.of_one, messages))

    def of_request(self, messages: Sequence[Message]) -> int:
        return round(self.fixed_tokens + self.of(messages))


def _content(compaction: Compaction) -> tuple[object, ...]:
    return compaction.pinned, compaction.added, compaction.kept_from, dict(compaction.notes)


def _weighed(conversation: Conversation, size: Size) -> Iterator[tuple[str, float]]:
    yield _SYSTEM, text_tokens(conversation.system) * size.factor
    yield _TOOLS, tool_tokens(conversation.tools) * size.factor
    prompt = newest_prompt(conversation.sent)
    for index, message in enumerate(conversation.sent):
        match message:
            case UserMessage():
                part = _PROMPT if index == prompt else _EARLIER
            case SystemReminder(cause=cause):
                part = _of_reminder(cause)
            case ToolResultMessage():
                part = _OUTPUT
            case AssistantMessage():
                part = _REPLIES
        yield part, size.of_one(message)


def _of_reminder(cause: str) -> str:
    if cause == PROJECT_CONTEXT or cause.startswith(MEMORY):
        return _RULES
    return {WORDS: _REMEMBERED, PLAN: _PLAN}.get(cause, _OTHER)
