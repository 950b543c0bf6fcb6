"""From the folder in which a cassette was recorded to the one in which it is played, and back."""

import re
from pathlib import PurePosixPath

from panpan.capabilities.cassettes.changed_text import Change


def relocation(source: str, target: str) -> Change:
    """Return what puts the path `target` for `source` wherever a text has it; both are absolute.

    The root of the file system is in every path, and stays as it is.
    """
    if source == target or "/" in (str(PurePosixPath(source)), str(PurePosixPath(target))):
        return lambda text: text
    pattern = re.compile(rf"(?<![\w.]){re.escape(source)}(?!\w)")
    return lambda text: pattern.sub(lambda _: target, text)
