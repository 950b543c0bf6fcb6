"""How a message tells the model of a command that the user ran."""

import re

from panpan.types.dataclass import dataclass
from panpan.types.messages import UserMessage

_TOLD = re.compile(
    r"<user_command>\n<command>\n(.*?)\n</command>\n<output>\n(.*)\n</output>\n</user_command>\n", re.DOTALL
)
_OUR_TAGS = re.compile(r"<(?=\s{0,9}/?\s{0,9}user_command\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToldCommand:
    """What a message tells the model of a command of the user's."""

    command: str
    output: str


def command_told_in(message: UserMessage) -> ToldCommand | None:
    """Return the command that a message tells of; None where it tells of none."""
    found = _TOLD.match(message.text)
    return None if found is None else ToldCommand(found[1], found[2])


def tagged(command: str, text: str) -> str:
    """Return what the model reads, which the output cannot close."""
    command, text = (_OUR_TAGS.sub("&lt;", part) for part in (command, text))
    return (
        f"<user_command>\n<command>\n{command}\n</command>\n<output>\n{text}\n</output>\n</user_command>\n"
        "The user ran this command himself; he asks for nothing with it alone."
    )
