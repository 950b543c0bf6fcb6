"""What a model is given to summarise: the conversation as text, with long output cut."""

from collections.abc import Sequence

from panpan.session.told_messages import ToldMessage, told_messages
from panpan.types.messages import Message, SystemReminder

_MOST_CHARS = {"The user": 6_000, "The model": 4_000, "Call": 800, "Result": 1_200, "Error": 1_600}
"""Of one message, by how its heading begins."""
_BEGINNING = 0.2
"""What is kept of the beginning, of a conversation that is too long; the rest is its end."""


def material(messages: Sequence[Message], *, earlier: str, hint: str, most_chars: int) -> str:
    """Return the text.

    Args:
        messages: What is to be summarised; whole blocks.
        earlier: The note that stands for what came before them; empty where there is none.
        hint: What the user wants to be heeded; empty where he said nothing.
        most_chars: Of the text, hint and note left out.
    """
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
