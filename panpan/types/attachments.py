"""Attachments of a prompt: mentioned files, data, and commands that the user ran.

A mention is `@src/main.py`, `@docs/`, `@notes.md:10-20` or `@"a name with blanks.txt"`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.types.messages import UserMessage

_MENTION = compile_late(
    r"""
    (?<![^\s(\[{])@                                # at the start of a word, so that no mail address is one
    (?: "(?P<quoted>[^"\n]+)"(?P<range>:\d{1,7}(?:-\d{1,7})?)?
      | (?P<word>[^\s"]\S*) )
    """,
    re.VERBOSE,
)
_RANGE = compile_late(r"(?P<path>.+?):(?P<first>\d{1,7})(?:-(?P<last>\d{1,7}))?", re.DOTALL)
_FENCE = compile_late(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_CLOSES_SENTENCE = frozenset(".,;:!?)]}>'\"…，。；：！？）】」")  # noqa: RUF001 - Chinese sentences end, too
_PLAIN_PATH = compile_late(r"[\w./~+,@%-]+")
_SUFFIX = compile_late(r"[^/]\.\w{1,8}$")
_DECORATED = compile_late(
    r"[^\S\n]*\n\s*(?:@|(?:async|def|class|public|private|protected|static|final|export|fun|function)\b)"
)
"""Text after a decorator or annotation: the end of its line, and then the definition that it decorates."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a mention."""

    path: str
    first: int | None = None
    """First line, from 1; None for the whole file."""
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """A word or a quoted name after an @ in a prompt."""

    name: str
    """Name as it was typed, without the @, the quotes, and the punctuation that ends a sentence."""
    readings: tuple[Reading, ...]
    """Possible readings, the longest first; never empty."""
    is_path: bool
    """True if it can only mean a path, so that the user should be told if there is no such file."""


def find_mentions(text: str) -> list[Mention]:
    """Return the possible mentions of files, in order, except those in fenced code."""
    text = _without_fenced_code(text)
    return [_mention(match, text) for match in _MENTION.finditer(text)]


def quote_path(path: str) -> str:
    """Return a mention of `path` as a user types it, quoted if the path has blanks."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def _mention(match: re.Match[str], text: str) -> Mention:
    if (quoted := match["quoted"]) is not None:
        as_range = tuple(_readings_of(f"{quoted}{match['range']}"))[1:] if match["range"] else ()
        return Mention(quoted, as_range or (Reading(quoted),), is_path=True)
    word = match["word"]
    endings = tuple(_endings(word))
    readings = tuple(reading for ending in endings for reading in _readings_of(ending))
    is_address = "://" in endings[-1]  # such as a resource of a server
    is_path = _looks_like_path(endings[-1]) and not is_address and not _DECORATED.match(text, match.end())
    return Mention(endings[-1], readings, is_path)


def _endings(word: str) -> Iterator[str]:
    """Yield the word, and the shorter words without one after the other of the marks at its end; none is empty."""
    yield word
    while len(word) > 1 and word[-1] in _CLOSES_SENTENCE:
        word = word[:-1]
        yield word


def _readings_of(word: str) -> Iterator[Reading]:
    yield Reading(word)
    if found := _RANGE.fullmatch(word):
        first, last = int(found["first"]), int(found["last"] or found["first"])
        yield Reading(found["path"], max(1, min(first, last)), max(1, first, last))


def _looks_like_path(word: str) -> bool:
    path = found["path"] if (found := _RANGE.fullmatch(word)) else word
    if _PLAIN_PATH.fullmatch(path) is None:
        return False
    return "/" in path or path.startswith((".", "~")) or _SUFFIX.search(path) is not None


def _without_fenced_code(text: str) -> str:
    """Return `text` with the lines of fenced code (CommonMark, section 4.5) emptied."""
    if "```" not in text and "~~~" not in text:
        return text
    fence = ""
    lines = []
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if not fence:
            if found and not (found["mark"].startswith("`") and "`" in found["info"]):
                fence = found["mark"]
            lines.append("" if fence else line)
            continue
        lines.append("")
        if found and found["mark"].startswith(fence) and not found["info"].strip():
            fence = ""
    return "\n".join(lines)


class MentionableNames(ABC):
    """Names that mean something other than a file after an @, such as those of subagents."""

    @property
    @abstractmethod
    def mentionable_names(self) -> frozenset[str]:
        """The names, as they are written after the @."""


class OtherMentions(ABC):
    """Things of others that go along with a message which mentions them, such as resources of MCP servers."""

    @property
    @abstractmethod
    def offered_mentions(self) -> Mapping[str, str]:
        """The names that are known now, as they are written after the @, each with a line about it."""


_HEAD = compile_late(r'<attached_(?:file|folder) path="([^"\n]*)">\n')


def attached_names(message: "UserMessage") -> list[str]:
    """Return the files and folders that go along with a message; for faces, which show its first block and these."""
    texts = (block.text for block in message.content[1:] if block.type == "text")
    return [found[1].replace("&quot;", '"') for text in texts if (found := _HEAD.match(text))]


def data_lines(message: "UserMessage") -> list[str]:
    """Return the lengths of the texts beside the user's words that are no files, such as piped data."""
    texts = [block.text for block in message.content if block.type == "text" and not block.audience][1:]
    counts = [len(text.splitlines()) for text in texts if not _HEAD.match(text)]
    return ["1 line of data" if count == 1 else f"{count:,} lines of data" for count in counts]


_TOLD = compile_late(
    r"<user_command>\n<command>\n(.*?)\n</command>\n<output>\n(.*)\n</output>\n</user_command>\n", re.DOTALL
)
_OUR_TAGS = compile_late(r"<(?=\s{0,9}/?\s{0,9}user_command\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShellCommandMessage:
    """A command that the user ran, and its output, as a message gives them to the model."""

    command: str
    output: str


def parse_shell_command(message: "UserMessage") -> ShellCommandMessage | None:
    """Return the command that a message is about; None if it is about none."""
    found = _TOLD.match(message.text)
    return None if found is None else ShellCommandMessage(found[1], found[2])


def tag_shell_command(command: str, text: str) -> str:
    """Return the text that the model reads of a command; nothing in the output can end the tags around it."""
    command, text = (_OUR_TAGS.sub("&lt;", part) for part in (command, text))
    return (
        f"<user_command>\n<command>\n{command}\n</command>\n<output>\n{text}\n</output>\n</user_command>\n"
        "The user ran this command; they ask for nothing with it alone."
    )
