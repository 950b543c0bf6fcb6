"""Mends one fault of the small model: of several files that the user means it renames in one, and takes that for all.

Rename says where else the old name stands. Where that is a file that he named, or he said "in all files", the rest is
done in its name; and where it made up files, the call is made without them, or for those that are called nearly so.
"""

import re
from typing import Any

from panpan.types.content import ToolUseBlock

_ELSEWHERE = "in files that were not named:\n"
_EXCEPT = re.compile(r"\b(?:not|don't|except|without|but|only|keep|leave|unchanged)\b", re.IGNORECASE)
_ALL_FILES = re.compile(
    r"\b(?:(?:all|each|every)(?: of)?(?: the| my)? (?:\w+ )?files?|everywhere|throughout|whole (?:project|code))\b",
    re.IGNORECASE,
)
_MISSING = re.compile(r"(\S+) does not exist(?:; there is (\S+))?;")


def rest_of_rename(use: ToolUseBlock, result: str, words: str) -> dict[str, Any]:
    """Return the arguments for Rename in the files that are left of those that `words` mean; nothing for none."""
    lines = result.partition(_ELSEWHERE)[2].splitlines() if use.name == "Rename" else []
    paths = dict.fromkeys(line.partition(":")[0] for line in lines)
    meant = [path for path in paths if _ALL_FILES.search(words) or _is_named(path, words)]
    return {**use.input, "file_paths": meant} if meant and not _EXCEPT.search(words) else {}


def rename_where_it_is(use: ToolUseBlock, refusal: str, words: str) -> dict[str, Any]:
    """Return the arguments for Rename without files that are not there and that nobody named; nothing for none left.

    Where there is one that is called nearly so, it takes the place of the other.
    """
    missing, told = dict(_MISSING.findall(refusal)), use.input.get("file_paths")
    if use.name != "Rename" or not isinstance(told, list) or any(_is_named(path, words) for path in missing):
        return {}
    there = [path for path in dict.fromkeys(missing.get(path, path) for path in told) if path]
    return {**use.input, "file_paths": there} if there and there != told else {}


def _is_named(path: str, words: str) -> bool:
    return re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w/-]|\.\w)", words) is not None
