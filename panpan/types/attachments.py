"""What goes along with the words of a message: files and folders that they mention, and data."""

import re

from panpan.types.content import TextBlock
from panpan.types.messages import UserMessage

_HEAD = re.compile(r'<attached_(?:file|folder) path="([^"\n]*)">\n')


def attached_names(message: UserMessage) -> list[str]:
    """Return the files and folders that go along with a message; for faces, which show its first block and these."""
    texts = (block.text for block in message.content[1:] if isinstance(block, TextBlock))
    return [found[1].replace("&quot;", '"') for text in texts if (found := _HEAD.match(text))]


def data_lines(message: UserMessage) -> list[str]:
    """Return how much text came with the words of a message and is no file, such as what was piped in."""
    texts = [block.text for block in message.content if isinstance(block, TextBlock)][1:]
    counts = [len(text.splitlines()) for text in texts if not _HEAD.match(text)]
    return ["1 line of data" if count == 1 else f"{count:,} lines of data" for count in counts]
