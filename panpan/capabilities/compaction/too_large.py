"""Why a request stays too long although nothing more can leave it, in words: what is large in it, and what helps."""

from collections.abc import Iterator

from panpan.capabilities.compaction.blocks import newest_prompt
from panpan.capabilities.compaction.size import Size
from panpan.core.conversation import Conversation
from panpan.session.token_estimate import text_tokens, tool_tokens
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.reminder_causes import MEMORY, PLAN, PROJECT_CONTEXT, WORDS


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of a request, as the user knows it."""

    name: str
    advice: str
    """What he can do about it; empty: nothing of its own."""


_SYSTEM = _Part("the system prompt", "say less in it (--system-prompt, --append-system-prompt)")
_TOOLS = _Part("the definitions of the tools", "switch some off ([tools] enabled)")
_PROMPT = _Part("your newest message", "say less at once, or name files in place of their text (/rewind takes it back)")
_EARLIER = _Part("what you said before", "begin a new session with what still counts")
_RULES = _Part("the project's context and rules", "make its AGENTS.md or CLAUDE.md shorter")
_REMEMBERED = _Part("what you said in your own words, to be remembered", "begin a new session with what still counts")
_PLAN = _Part("the plan", "make it shorter")
_OTHER = _Part("notes for the model", "")
_OUTPUT = _Part("the newest output of tools", "let the model read less at once")
_REPLIES = _Part("what the model said", "")


def too_large(conversation: Conversation, window_tokens: int | None, *, is_refused: bool) -> str:
    """Return what is to be said of a conversation that nothing more can leave.

    Args:
        conversation: As it would be sent.
        window_tokens: Of the model's window; None where it is not known.
        is_refused: Whether the provider has refused it; if not, it fills more of the window than it should.
    """
    size = Size(conversation)
    total: dict[_Part, float] = {}
    for part, tokens in _weighed(conversation, size):
        total[part] = total.get(part, 0.0) + tokens
    largest = max(total, key=lambda part: total[part])
    advice = [largest.advice, "choose a model with a larger window (--model)"]
    is_window_sure = window_tokens is not None and (size.whole > window_tokens or not is_refused)
    if not is_window_sure:  # it must be smaller than what is known of the model
        advice.append("say how large its window is ([compaction] window_tokens)")
    what = "is too long for the model's context window" if is_refused else "leaves too little room for the reply"
    most = f" of at most {window_tokens:,}" if is_window_sure else ""
    return (
        f"the request {what}, and nothing more can leave it: about {size.whole:,} tokens{most}, and about "
        f"{round(total[largest]):,} of them are {largest.name}; {', or '.join(filter(None, advice))}"
    )


def _weighed(conversation: Conversation, size: Size) -> Iterator[tuple[_Part, float]]:
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


def _of_reminder(cause: str) -> _Part:
    if cause == PROJECT_CONTEXT or cause.startswith(MEMORY):
        return _RULES
    return {WORDS: _REMEMBERED, PLAN: _PLAN}.get(cause, _OTHER)
