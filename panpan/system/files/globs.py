"""Glob patterns as regular expressions: `*` and `?` within one name, `**` across folders, `[…]`, and `{a,b}`.

The rule: the meaning is that of ripgrep and .gitignore, and no pattern can make a match run away: a star that has found
its first fit never tries another, which changes nothing for globs.
"""

import re
from collections.abc import Iterator

from panpan.errors import ToolError
from panpan.types.pattern import compile_late

MAX_ALTERNATIVES = 200
"""Most patterns that the braces of one pattern may expand to."""

MAX_PATTERN_CHARS = 1000

MAX_GITIGNORE_CHARS = 10_000
"""More than `MAX_PATTERN_CHARS`, since such a pattern may be an escaped path."""

_ANY_FOLDERS = "(?:[^/]+/)*?"
_GITIGNORE_SPECIAL = compile_late(r"[\\*?\[\]!#]")


def compile_glob(pattern: str, *, is_anchored: bool | None = None) -> re.Pattern[str]:
    """Return a regular expression whose `fullmatch` on a relative path says whether the glob matches it.

    Args:
        pattern: The glob, relative, with `/` between names.
        is_anchored: Whether it starts at the top; if None, it does when it holds a slash, as in .gitignore.

    Raises:
        ToolError: A bracket or brace is not closed, or the pattern is too long or expands to too many patterns.
    """
    if is_anchored is None:
        is_anchored = "/" in pattern.rstrip("/")
    alternatives = (_path_regex(alternative, is_anchored) for alternative in expand_braces(pattern))
    return re.compile("|".join(dict.fromkeys(alternatives)), re.DOTALL)


def compile_gitignore(pattern: str) -> re.Pattern[str]:
    """Return a regular expression whose `fullmatch` on a relative path says whether a line of .gitignore excludes it.

    It also matches whatever lies below what the pattern names. A folder has a slash at its end, or is taken for a file.
    Braces are literal, and a line that takes back (`!`) or comments (`#`) is for the caller.

    Raises:
        ToolError: The line names nothing, is too long, or has a class or escape that is not closed.
    """
    if len(pattern) > MAX_GITIGNORE_CHARS:
        raise ToolError(f"the pattern is longer than {MAX_GITIGNORE_CHARS} characters; use a simpler one")
    while pattern.endswith(" ") and not pattern.endswith("\\ "):
        pattern = pattern[:-1]
    name = pattern.removesuffix("/")
    if not name.strip("/"):
        raise ToolError("the pattern names nothing")
    if (len(name) - len(name.rstrip("\\"))) % 2:
        raise ToolError(
            f"the pattern {pattern} ends with a backslash that escapes nothing; write \\\\ for the character"
        )
    below = "/.*" if pattern.endswith("/") else "(?:/.*)?"
    return re.compile(_path_regex(name, is_anchored="/" in name) + below, re.DOTALL)


def compile_rooted(pattern: str) -> re.Pattern[str]:
    """Return the same for a pattern that begins at the top, with or without `./` or `/`, unless it begins with `**/`.

    Raises:
        ToolError: It is no pattern.
    """
    return compile_gitignore(pattern if pattern.startswith("**/") else f"/{pattern.removeprefix('./').lstrip('/')}")


def gitignore_escaped(path: str) -> str:
    """Return the pattern for `compile_gitignore` that matches `path` alone, and what lies below it."""
    pattern = _GITIGNORE_SPECIAL.sub(r"\\\g<0>", path)
    stripped = pattern.rstrip(" ")
    return stripped + "\\ " * (len(pattern) - len(stripped))


def expand_braces(pattern: str) -> list[str]:
    """Return the patterns without braces that `pattern` expands to.

    Raises:
        ToolError: A brace is not closed, or there are more than `MAX_ALTERNATIVES`.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise ToolError(f"the glob pattern is longer than {MAX_PATTERN_CHARS} characters; use a simpler one")
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        candidate = waiting.pop()
        braces = _first_braces(candidate)
        if braces is None:
            done.append(candidate)
        else:
            start, end, parts = braces
            waiting.extend(candidate[:start] + part + candidate[end:] for part in reversed(parts))
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise ToolError(f"the braces of {pattern} mean more than {MAX_ALTERNATIVES} patterns; use fewer")
    return done


def has_magic(text: str) -> bool:
    """True if `text` holds any character that means something in a glob."""
    return any(character in text for character in "*?[]{}\\")


def name_globs(pattern: str) -> tuple[str, ...]:
    """Return globs for a file's name, one of which every match of `pattern` has; empty if names say nothing."""
    names = dict.fromkeys(alternative.rpartition("/")[2] for alternative in expand_braces(pattern))
    if len(names) > 20 or any(not name.strip("*") or "\\" in name for name in names):
        return ()
    return tuple(names)


def _first_braces(pattern: str) -> tuple[int, int, list[str]] | None:
    start, depth, parts, part_start = -1, 0, [], 0
    for index, character in _plain_characters(pattern):
        if character == "{":
            if depth == 0:
                start, part_start = index, index + 1
            depth += 1
        elif character == "," and depth == 1:
            parts.append(pattern[part_start:index])
            part_start = index + 1
        elif character == "}" and depth:
            depth -= 1
            if depth == 0:
                return start, index + 1, [*parts, pattern[part_start:index]]
    if depth:
        raise ToolError(f"the glob pattern {pattern} has a {{ that is not closed; write \\{{ for the character itself")
    return None


def _plain_characters(pattern: str) -> Iterator[tuple[int, str]]:
    """Yield the characters with their places, without those after a backslash and those in brackets."""
    index = 0
    while index < len(pattern):
        character = pattern[index]
        if character == "\\":
            index += 2
        elif character == "[":
            index = _class_end(pattern, index)
        else:
            yield index, character
            index += 1


def _class_end(pattern: str, start: int) -> int:
    """Return the index behind the `]` that closes the class at `start`."""
    first = start + 2 if pattern[start + 1 : start + 2] in ("!", "^") else start + 1
    end = pattern.find("]", first + 1)  # a `]` in the first place is a literal one
    if end < 0:
        raise ToolError(f"the glob pattern {pattern} has a [ that is not closed; write \\[ for the character itself")
    return end + 1


def _path_regex(pattern: str, is_anchored: bool) -> str:
    names = [name for name in pattern.split("/") if name]
    if pattern.endswith("/"):
        names.append("**")
    if not is_anchored and names[:1] != ["**"]:
        names.insert(0, "**")
    names = [name for index, name in enumerate(names) if name != "**" or names[index - 1 : index] != ["**"]]
    if not names:
        return "(?!)"
    if names[-2:] == ["**", "*"]:
        names.pop()  # equivalent, and faster
    runs = _runs_between_double_stars(names)
    ends_open = names[-1] == "**"
    regex = "/".join(_name_regex(name) for name in runs[0])
    regex += "/" if runs[0] and len(runs) > 1 else ""
    for index, run in enumerate(runs[1:], start=1):
        fixed = "/".join(_name_regex(name) for name in run)
        if index < len(runs) - 1:
            regex += f"(?>{_ANY_FOLDERS}{fixed}/)"
        else:
            regex += ".+" if ends_open else f"{_ANY_FOLDERS}{fixed}"
    return regex


def _runs_between_double_stars(names: list[str]) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(name)
    return runs


def _name_regex(name: str) -> str:
    """Translate one name; each star but the last takes the first fit of what follows it, for good."""
    chunks = _chunks_between_stars(name)
    if len(chunks) == 1:
        return chunks[0]
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in chunks[1:-1] if chunk)
    return f"{chunks[0]}{middle}[^/]*{chunks[-1]}"


def _chunks_between_stars(name: str) -> list[str]:
    chunks = [""]
    index = 0
    while index < len(name):
        character = name[index]
        if character == "*":
            chunks.append("")
            index += 1
        elif character == "?":
            chunks[-1] += "[^/]"
            index += 1
        elif character == "[":
            end = _class_end(name, index)
            chunks[-1] += _class_regex(name[index + 1 : end - 1])
            index = end
        else:
            if character == "\\" and index + 1 < len(name):
                index += 1
            chunks[-1] += re.escape(name[index])
            index += 1
    return chunks


def _class_regex(inside: str) -> str:
    negation = ""
    if inside[0] in "!^":
        negation, inside = "^", inside[1:]
    members = ""
    index = 0
    while index < len(inside):
        low, high = inside[index], inside[index]
        if inside[index + 1 : index + 2] == "-" and index + 2 < len(inside):
            high = inside[index + 2]
            index += 2
        if low > high:
            raise ToolError(f"the glob pattern has the range {low}-{high}, which is reversed")
        members += f"{re.escape(low)}-{re.escape(high)}"
        index += 1
    return f"(?!/)[{negation}{members}]"
