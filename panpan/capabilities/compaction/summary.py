"""The summary that a model writes of the part of a conversation that leaves its context.

The rule: whatever the model sends, a summary is short text under the headings that were asked for, or there is none.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import aclosing
from functools import cache
from importlib.resources import files

from anyio import move_on_after

from panpan.capabilities.compaction.computed_record import ComputedRecord
from panpan.errors import AuthenticationError, CassetteError, ContextOverflowError, ProviderError, RetryableError
from panpan.session.descriptions import TranscriptEntry, transcript_entries
from panpan.types.attachments import parse_shell_command
from panpan.types.dataclass import dataclass
from panpan.types.events import TextDelta, ThinkingDelta, ToolInputDelta
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import (
    LAST_REPLY,
    NOTICE,
    RECORD,
    SUMMARY,
    WORDS,
    AssistantMessage,
    Message,
    SystemReminder,
    ToolResultMessage,
    UserMessage,
    strip_tags,
)
from panpan.types.pattern import compile_late

HEADINGS = ("Goal", "Constraints", "Progress", "Decisions", "Open questions", "Next steps", "Critical context")
NEEDED_HEADINGS = ("Goal", "Progress", "Next steps")
MOST_CHARS = 16_000
MOST_STREAMED_CHARS = 120_000
"""Most characters of text, thinking and arguments together; a longer stream is stopped."""
TIME_LIMIT_S = 300.0
_LEAST_CHARS = 40
"""Least characters of text below the headings."""
_HEADING = compile_late(r"^\W{0,6}(" + "|".join(HEADINGS) + r")\W{0,4}$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Summary:
    """Result of asking for a summary."""

    text: str = ""
    problem: str = ""
    """Reason why there is no summary, as half a sentence."""
    reply: AssistantMessage | None = None
    """The model's reply, kept for its cost."""


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
        text = summary_input(messages, earlier=earlier, hint=hint, most_chars=round(most_chars * share))
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
    return strip_tags(text[found[0].start() :].strip()) if len("".join(body.split())) >= _LEAST_CHARS else ""


_MOST_CHARS = {"The user": 6_000, "The model": 4_000, "Call": 800, "Result": 1_200, "Error": 1_600}
"""Most characters of a message, by the beginning of its heading."""
_BEGINNING = 0.2
"""Share of a long conversation that is kept from its beginning; the rest is its end."""


def summary_input(messages: Sequence[Message], *, earlier: str, hint: str, most_chars: int) -> str:
    """Return the material for a summary; `most_chars` without hint and earlier summary."""
    said = [message for message in messages if not isinstance(message, SystemReminder)]
    told = "\n\n".join(f"{one.heading}:\n{_cut(one)}" for one in transcript_entries(said))
    parts = [
        f"The earlier note:\n\n{earlier}" if earlier else "",
        f"What was said and done{' since' if earlier else ''}:\n\n{_middle_left_out(told, most_chars)}",
        f"The user wants the note to pay attention to this: {hint}" if hint else "",
        "That was all. Write the note now, under the headings.",
    ]
    return "\n\n".join(filter(None, parts))


def _cut(one: TranscriptEntry) -> str:
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


_LAST_REPLY_CHARS = 1_500
"""Characters kept from the end of the last reply, where its questions are."""


def summary_notice(history_tool: str) -> SystemReminder:
    """Return the notice of a compaction; `history_tool` is empty if the model has none."""
    where = f"{history_tool} shows them word for word." if history_tool else "They are kept in the session's log."
    return SystemReminder(
        text="The beginning of this conversation does not fit the context any more. What follows replaces the "
        f"messages that are not here; go on with the work as if they were. {where}",
        cause=NOTICE,
    )


_NOTE = compile_late(r"\s*#(?![#!]|include\b)\s*\S")
"""Beginning of a memory note in other agents; a comment in pasted code is none."""
_TO_REMEMBER = compile_late(
    r"\b(?:remember|keep in mind|bear in mind|don'?t forget|do not forget|note that|from now on|always|never"
    r"|merk dir|denk daran|vergiss nicht|ab jetzt|immer|niemals"
    r"|souviens-toi|n'oublie pas|recuerda|no olvides|ricorda|lembre-se|запомни|не забудь)\b"
    r"|记住|記住|牢记|别忘|覚えて|忘れないで|기억해",
    re.IGNORECASE,
)
"""Words that ask to remember something. What they miss is quoted while there is room."""
_LONG_CHARS = 4_000
"""A longer text is mostly pasted; only paragraphs to be remembered are quoted."""
_MOST_PARAGRAPHS = 10


@dataclass(frozen=True, slots=True)
class Quote:
    """A quotation of the user."""

    number: int
    """Number of the message, from 1."""
    text: str
    is_to_be_remembered: bool


def words_reminder(words: list[Quote], left_out: int) -> SystemReminder | None:
    """Return the user's words, if any."""
    if not words and not left_out:
        return None
    heading = "What the user said in them, in their own words, by number of message; the newest is last:"
    return SystemReminder(text=f"{heading}\n\n{quotes_text(words, left_out)}", cause=WORDS)


def record_reminder(record: ComputedRecord, most_chars: int) -> SystemReminder | None:
    """Return the computed record, if it holds anything."""
    if not record.summary:
        return None
    heading = "What was done in them, computed from the calls and their results:"
    return SystemReminder(text=f"{heading}\n\n{record.text(most_chars)}", cause=RECORD)


def summary_reminder(summary: Summary) -> SystemReminder | None:
    """Return the summary, if there is one."""
    if not summary.text:
        return None
    heading = (
        "A summary of them, written by a model. It may be wrong, and it is nobody's order: what the user wants, they "
        "have said in their own words."
    )
    return SystemReminder(text=f"{heading}\n\n{summary.text}", cause=SUMMARY)


def last_reply_reminder(text: str) -> SystemReminder | None:
    """Return the end of the model's last words, which the user's next message answers."""
    if not text.strip():
        return None
    heading = "The end of your last reply, word for word; what the user says next may answer it:"
    return SystemReminder(text=f"{heading}\n\n{strip_tags(text.strip()[-_LAST_REPLY_CHARS:])}", cause=LAST_REPLY)


def summary_in_reminder(reminder: SystemReminder) -> str:
    """Return the summary in a reminder; empty: it holds none."""
    return reminder.text.partition("\n\n")[2] if reminder.cause == SUMMARY else ""


def user_quotes(messages: Sequence[Message], answering: Collection[str]) -> Iterator[Quote]:
    """Yield the user's words, also answers to questions, without attached files."""
    names: dict[str, str] = {}
    for number, message in enumerate(messages, 1):
        match message:
            case UserMessage() if text := _words(message):
                yield from _said(number, text)
            case AssistantMessage():
                names.update((use.id, use.name) for use in message.tool_uses)
            case ToolResultMessage() if names.get(message.tool_use_id) in answering and not message.is_error:
                yield Quote(number, f"(asked) {message.text.strip()}", is_to_be_remembered=True)
            case _:
                pass


def choose_quotes(said: Sequence[Quote], most_chars: int) -> list[Quote]:
    """Return quotations, oldest first: those to be remembered, the first, then the newest within `most_chars`."""
    chosen = {one.number: one for one in said if one.is_to_be_remembered}
    left = most_chars - sum(len(one.text) for one in chosen.values())
    for one in (*said[:1], *reversed(said[1:])):
        if one.number not in chosen and len(one.text) <= left:
            chosen[one.number] = one
            left -= len(one.text)
    return [chosen[number] for number in sorted(chosen)]


def _words(message: UserMessage) -> str:
    if (command := parse_shell_command(message)) is not None:
        return f"! {command.command}"
    return message.typed.strip()


def _said(number: int, text: str) -> Iterator[Quote]:
    is_note = _NOTE.match(text) is not None
    is_to_be_remembered = is_note or _TO_REMEMBER.search(text) is not None
    if len(text) <= _LONG_CHARS or not is_to_be_remembered:
        yield Quote(number, text, is_to_be_remembered)
        return
    first, *others = text.split("\n\n")
    paragraphs = [first.strip()] if is_note or _TO_REMEMBER.search(first) else []
    paragraphs += [part.strip() for part in others if _TO_REMEMBER.search(part)]
    yield Quote(number, "\n\n".join(part[:_LONG_CHARS] for part in paragraphs[:_MOST_PARAGRAPHS]), True)


def quotes_text(said: Sequence[Quote], left_out: int) -> str:
    """Return the quotations for a model."""
    more = f"\n({left_out} more, too long to be quoted here)" if left_out else ""
    return "\n".join(f"[{one.number}] {strip_tags(one.text)}" for one in said) + more
