"""What the readable formats say of a message, apart from how they say it."""

import re
from collections.abc import Callable, Mapping, Sequence

from panpan.core.conversation import ENDED, ENDED_BEFORE, INTERRUPTED, INTERRUPTED_BEFORE, NEVER_ANSWERED, NEVER_BEGUN
from panpan.session.compaction_report import compaction_lines
from panpan.session.export.transcript import Transcript
from panpan.session.session_costs import SessionCosts, session_costs
from panpan.system.text.terminal_text import clean_line
from panpan.types.compaction import Compaction
from panpan.types.content import DocumentBlock, ImageBlock, ToolUseBlock
from panpan.types.dataclass import dataclass
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage

MAX_TITLE_CHARS = 120
INTRODUCTION = "Exported by panpan. Keys and what looks like one were replaced by [redacted]."


_REFUSED = re.compile(r"\w+ was not run\b")
_MARKS: Sequence[tuple[str, Callable[[str], bool]]] = (
    ("not run", lambda text: bool(_REFUSED.match(text))),
    ("not run", lambda text: text in (NEVER_BEGUN, INTERRUPTED_BEFORE, ENDED_BEFORE)),
    ("interrupted", lambda text: text.startswith((INTERRUPTED, ENDED))),
    ("not answered", lambda text: text.startswith(NEVER_ANSWERED)),
)
"""What the text of a result says that is no failure of the call: it was refused, or the turn ended before it."""


def compaction_told(compaction: Compaction) -> tuple[str, str]:
    """Return what a compaction did, on one line, and what became of the messages."""
    first, *others = compaction_lines(compaction)
    return one_line(first), "\n".join(others[:-1])  # the last says how it is taken back, which an export is not


def results_by_call(messages: Sequence[Message]) -> Mapping[str, ToolResultMessage]:
    """Return the results by the id of the call that they answer, so that each can stand with its call."""
    return {message.tool_use_id: message for message in messages if isinstance(message, ToolResultMessage)}


def title_of(transcript: Transcript) -> str:
    """Return what the session is called, on one line: its title, else the beginning of what the user said first."""
    first = next((message.text for message in transcript.messages if isinstance(message, UserMessage)), "")
    return one_line(transcript.title) or one_line(first) or "A session of panpan"


def facts_of(transcript: Transcript) -> Sequence[tuple[str, str]]:
    """Return what stands at the top of a file, each with its name."""
    costs = session_costs(transcript.messages)
    models = ", ".join(
        dict.fromkeys(message.model for message in transcript.messages if isinstance(message, AssistantMessage))
    )
    return (
        ("Session", one_line(transcript.session_id)),
        ("Folder", one_line(transcript.cwd)),
        ("Model", one_line(models or transcript.model)),
        ("Exported", transcript.exported_at.strftime("%Y-%m-%d %H:%M")),
        ("Tokens", _tokens(costs)),
    )


def call_title(use: ToolUseBlock) -> str:
    """Return a call on one line: its tool, and its first text, which says most."""
    text = next((value for value in use.input.values() if isinstance(value, str)), "")
    return one_line(f"{use.name} {text}")


def attachment(block: ImageBlock | DocumentBlock) -> str:
    """Return what is said in place of a picture or document."""
    size = len(block.source.data) * 3 // 4
    kind = "picture" if isinstance(block, ImageBlock) else "document"
    return one_line(f"[{kind}, {block.source.media_type}, {size:,} bytes]")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended."""

    mark: str
    """A word or two behind the call."""
    is_error: bool = False


def outcome_of(result: ToolResultMessage | None) -> Outcome:
    """Return how a call ended; None: it was not answered when the session was exported."""
    if result is None:
        return Outcome("not answered")
    if not result.is_error:
        return Outcome("done")
    return Outcome(next((mark for mark, is_such in _MARKS if is_such(result.text)), "failed"), is_error=True)


def one_line(text: str) -> str:
    """Return the beginning of a text on one line, harmless for a terminal."""
    line = clean_line(text)
    return line if len(line) <= MAX_TITLE_CHARS else f"{line[: MAX_TITLE_CHARS - 1]}…"


def _tokens(costs: SessionCosts) -> str:
    usage = costs.usage
    sent = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
    price = "price not known" if costs.cost_usd is None else f"${costs.cost_usd:.4f}"
    return (
        f"{sent:,} sent ({usage.cache_read_input_tokens:,} from the cache), {usage.output_tokens:,} received; {price}"
    )
