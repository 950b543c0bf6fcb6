"""Mentions such as `@docs/style.md` in a memory file, which ask for that file to be read as well."""

import re

from panpan.capabilities.project_context.code_marks import without_code

_MENTION = re.compile(r"(?:^|(?<=\s))@(?P<path>(?:\\ |[^\s\\]|\\(?! ))+)", re.MULTILINE)
_MAY_BEGIN = re.compile(r"[\w./~-]")
_TRAILING = ".,;:!?)]}>\"'*_"


def mentioned_paths(markdown: str) -> list[tuple[str, ...]]:
    """Return each mention outside code, as the paths it may mean: as written, then without punctuation behind it."""
    mentions: dict[tuple[str, ...], None] = {}
    for match in _MENTION.finditer(without_code(markdown)):
        path = match["path"].replace("\\ ", " ")
        if _MAY_BEGIN.match(path):
            bare = path.rstrip(_TRAILING)
            mentions[(path, bare) if bare and bare != path else (path,)] = None
    return list(mentions)
