"""Mends one fault of the small model: of several files that the user named it renames in one, and takes that for all.

Rename says where else the old name stands. Where that is a file that he named, the rest is done in its name.
"""

import re
from typing import Any

from panpan.types.content import ToolUseBlock

_ELSEWHERE = "in files that were not named:\n"
_EXCEPT = re.compile(r"\b(?:not|don't|except|without|but|only|keep|leave|unchanged)\b", re.IGNORECASE)


def rest_of_rename(use: ToolUseBlock, result: str, words: str) -> dict[str, Any]:
    """Return the arguments for Rename in the files that are left of those that `words` name; nothing for none."""
    lines = result.partition(_ELSEWHERE)[2].splitlines() if use.name == "Rename" else []
    paths = dict.fromkeys(line.partition(":")[0] for line in lines)
    named = [path for path in paths if re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", words)]
    return {**use.input, "file_paths": named} if named and not _EXCEPT.search(words) else {}
