"""What the words of a command may name, whatever becomes of it.

The rule: more may be named than is meant, never less of what stands in fixed words.
"""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from panpan.shell_analysis.facts import SimpleCommand
from panpan.shell_analysis.word_paths import as_path, folder_of

_BEFORE_NAMES = re.compile("[=@:,;<{}]")
"""Signs behind which programs take a part of a word for the name of a file."""
_BETWEEN_NAMES = re.compile(r"""[\s'";&|<>()=`$]+""")
_FILE_ADDRESS = re.compile(r"file://(?:localhost|127\.0\.0\.1)?(/[^?#]*)", re.IGNORECASE)
_MESSAGE = re.compile(r"git (?:-[A-Za-z]*m|--message)|gh (?:-b|-t|--body|--title)")
"""Programs and flags behind which a text stands."""
_SED = frozenset({"sed", "gsed", "/bin/sed", "/usr/bin/sed"})
_BEHIND_FILE_COMMANDS = re.compile(r"(?=[rRwW][ \t]*([^\n]{1,4096})(?:\n|$))")
"""What sed may take for the file that it reads or writes: all that stands behind the letter of such a command."""


def mentioned(command: SimpleCommand) -> Iterable[str]:
    """Yield every fixed word that could be a path, and what stands in one behind `=`, `@` and other such signs."""
    name = command.words[0].text if command.words else ""
    before = ""
    for word in (*command.words[1:], *(redirect.target for redirect in command.redirects)):
        is_text = is_message(name or "", before, word.text or "")
        before = word.text or ""
        if not word.text:
            if word.is_glob:
                yield folder_of(word.pattern)
            continue
        if not word.text.startswith("-"):
            yield as_path(word.text)
        elif len(word.text) > 2 and not word.text.startswith("--"):
            yield as_path(word.text[2:])  # what stands behind a flag in the same word
        yield from map(as_path, dict.fromkeys(part for part in _parts(word.text, is_message=is_text) if part))
    if name in _SED:
        texts = (word.text or "" for word in command.words[1:])
        yield from (as_path(name) for text in texts for name in _BEHIND_FILE_COMMANDS.findall(text))


def is_message(program: str, before: str, word: str) -> bool:
    """Return whether a word is a text for people: the value of a flag such as `git commit -m`.

    Args:
        program: Whose word it is.
        before: The word before it.
        word: The word, which may hold the flag, too: `--message=text`.
    """
    return any(_MESSAGE.fullmatch(f"{program} {flag}") for flag in (before, word.partition("=")[0]))


def _parts(text: str, *, is_message: bool) -> Iterator[str]:
    """Yield the parts of a word that could be names of files."""
    yield text.partition("=")[2]
    yield from _BEFORE_NAMES.split(text)[1:]  # `-d @file`, `name=<file;type=text`, `file:name`, `{a,b}`
    if address := _FILE_ADDRESS.search(text):
        yield unquote(address[1])
    if any(letter.isspace() for letter in text) and not is_message:
        yield from _BETWEEN_NAMES.split(text)  # a command line, or a script, of another language
