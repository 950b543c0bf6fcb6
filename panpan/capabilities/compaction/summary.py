"""The summary: what a model makes of the part of a conversation that leaves its context.

The rule: whatever the model sends, a summary is short text under the headings that were asked for, or there is none.
"""

import re
from collections.abc import Sequence
from contextlib import aclosing
from functools import cache
from importlib.resources import files

from anyio import move_on_after

from panpan.errors import AuthenticationError, CassetteError, ContextOverflowError, ProviderError, RetryableError
from panpan.session.in_words import ToldMessage, told_messages
from panpan.types.dataclass import dataclass
from panpan.types.events import TextDelta, ThinkingDelta, ToolInputDelta
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import AssistantMessage, Message, SystemReminder, UserMessage, untagged

HEADINGS = ("Goal", "Constraints", "Progress", "Decisions", "Open questions", "Next steps", "Critical context")
NEEDED_HEADINGS = ("Goal", "Progress", "Next steps")
MOST_CHARS = 16_000
MOST_STREAMED_CHARS = 120_000
"""Of text, thinking and arguments together; a longer stream is stopped."""
TIME_LIMIT_S = 300.0
_LEAST_CHARS = 40
"""Below the headings."""
_HEADING = re.compile(r"^\W{0,6}(" + "|".join(HEADINGS) + r")\W{0,4}$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Summary:
    """Result of asking for a summary."""

    text: str = ""
    problem: str = ""
    """Half a sentence."""
    reply: AssistantMessage | None = None
    """Kept for its cost."""


async def ask_for_summary(
    llm: ModelClient,
    messages: Sequence[Message],
    *,
    earlier: str,
    hint: str,
    most_chars: int,
    time_limit_s: float = TIME_LIMIT_S,
) -> Summary:
    """Ask the model for a summary.

    Raises:
        AuthenticationError: The key is not accepted, so that no other request would be, either.
        CassetteError: A recorded conversation is played, and this was not asked in it.
        RetryableError: The provider cannot be reached, so that the next request would fail, too.
    """
    for share in (1.0, 0.4):
        text = material(messages, earlier=earlier, hint=hint, most_chars=round(most_chars * share))
        try:
            return await _asked(llm, text, time_limit_s)
        except (AuthenticationError, CassetteError, RetryableError):
            raise
        except ContextOverflowError:
            continue
        except ProviderError as error:
            return Summary(problem=f"the provider refused to make one: {error}")
    return Summary(problem="the material for one is too long for the model")


def summary_in(text: str) -> str:
    """Return the summary from its first heading on; empty: the text is none."""
    found = list(_HEADING.finditer(text))
    names = {match[1].lower() for match in found}
    if not all(name.lower() in names for name in NEEDED_HEADINGS):
        return ""
    body = _HEADING.sub("", text[found[0].start() :])
    return untagged(text[found[0].start() :].strip()) if len("".join(body.split())) >= _LEAST_CHARS else ""


_MOST_CHARS = {"The user": 6_000, "The model": 4_000, "Call": 800, "Result": 1_200, "Error": 1_600}
"""Per message, by how its heading begins."""
_BEGINNING = 0.2
"""Share of a long conversation that is kept from its beginning; the rest is its end."""


def material(messages: Sequence[Message], *, earlier: str, hint: str, most_chars: int) -> str:
    """Return the material for a summary; `most_chars` without hint and earlier summary."""
    said = [message for message in messages if not isinstance(message, SystemReminder)]
    told = "\n\n".join(f"{one.heading}:\n{_cut(one)}" for one in told_messages(said))
    parts = [
        f"The earlier note:\n\n{earlier}" if earlier else "",
        f"What was said and done{' since' if earlier else ''}:\n\n{_middle_left_out(told, most_chars)}",
        f"The user wants this to be heeded in the note: {hint}" if hint else "",
        "That was all. Write the note now, under the headings.",
    ]
    return "\n\n".join(filter(None, parts))


def _cut(one: ToldMessage) -> str:
    limit = next((most for name, most in _MOST_CHARS.items() if one.heading.startswith(name)), 1_000)
    return _middle_left_out(one.text, limit, beginning=0.6)


def _middle_left_out(text: str, most_chars: int, *, beginning: float = _BEGINNING) -> str:
    if len(text) <= most_chars:
        return text
    head = round(most_chars * beginning)
    tail = max(1, most_chars - head)
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


async def _asked(llm: ModelClient, text: str, time_limit_s: float) -> Summary:
    reply: AssistantMessage | None = None
    streamed = 0
    with move_on_after(time_limit_s):
        async with aclosing(llm.stream(ModelRequest(_prompt(), (), (UserMessage.of(text),)))) as events:
            async for event in events:
                match event:
                    case TextDelta(text=more) | ThinkingDelta(text=more):
                        streamed += len(more)
                    case ToolInputDelta(json=more):
                        streamed += len(more)
                    case AssistantMessage():
                        reply = event
                    case _:
                        pass
                if streamed > MOST_STREAMED_CHARS:
                    return Summary(problem="the model's text did not end")
    if reply is None:
        return Summary(problem=f"the model did not finish one within {time_limit_s:.0f} s")
    problem = _problem_of(reply)
    return Summary("" if problem else summary_in(reply.text), problem, reply)


def _problem_of(reply: AssistantMessage) -> str:
    """Return the reason why a reply is no summary; empty: it is one."""
    if reply.tool_uses:
        return "the model called tools instead"
    if reply.stop_reason == "refusal":
        return "the model refused"
    if not reply.text.strip():
        return "the model sent no text"
    if reply.stop_reason in ("max_tokens", "model_context_window_exceeded") or len(reply.text) > MOST_CHARS:
        return "the model's text was too long"
    if not summary_in(reply.text):
        return "what the model sent is none"
    return ""


@cache
def _prompt() -> str:
    return files(__package__).joinpath("summary.md").read_text(encoding="utf-8").strip()
