"""Mends one fault of the small model: it replaces a word with sed, which says nothing when it has replaced nothing.

It takes the silence for success. The Edit that the command stands for refuses what it cannot find, shows what came of
it, and is put to the user with its diff.
"""

import re

from panpan.types.content import ToolUseBlock

_PLAIN_SED = re.compile(
    r"sed -i (?P<quote>['\"])s(?P<mark>[/|,#])(?P<old>[\w \-:,/]+)(?P=mark)(?P<new>[\w \-:,./]*)(?P=mark)g?(?P=quote)"
    r" (?P<path>[\w./][\w./\-]*)"
)
"""One replacement in one file, of texts in which nothing is special to sed or the shell."""


def with_edit_for_sed(use: ToolUseBlock) -> ToolUseBlock:
    """Return the call, or the Edit that it stands for: every place, since who names a word and no place means all."""
    command = use.input.get("command")
    found = _PLAIN_SED.fullmatch(command.strip()) if use.name == "Bash" and isinstance(command, str) else None
    if found is None or any(found["mark"] in found[part] for part in ("old", "new")):
        return use
    arguments = {"file_path": found["path"], "old_string": found["old"], "new_string": found["new"]}
    return use.model_copy(update={"name": "Edit", "input": {**arguments, "replace_all": True}})
