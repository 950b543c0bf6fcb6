"""What a shell command line may run: read strictly to allow it, and generously to forbid it.

`simple_commands` gives up (None) on whatever it does not understand completely, so that an allowance is never widened
by shell syntax. `command_parts` never gives up: it takes apart more than a shell would, so that nothing slips past a
restriction by quotes, wrappers or separators. Neither is a shell; the promise is only on which side each one errs.
`simple_commands` reads more than `tools/shell/simple_words.py` on purpose, such as `;` and `*`: the user's own rule has
to name each program that it finds.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+)
    | (?P<operator>&&|\|\||;(?!;)|\|(?!&)|\n)
    | (?P<harmless>(?:[12]?>&[12]|(?:[012]?>>?|&>>?|0?<)[ ]?/dev/null)(?=[ \t;|&\n]|$))
    | (?P<single>'[^'\x00-\x08\x0b-\x1f\x7f]*')
    | (?P<double>"(?:[^"$`\\\x00-\x08\x0b-\x1f\x7f]|\\[^$`"\\\n\x00-\x1f\x7f])*")
    | (?P<escape>\\[^\n\x00-\x1f\x7f])
    | (?P<plain>[^\s'"\\;&|$`(){}<>\#\x00-\x1f\x7f]+ | (?<=[^\s;|&])\#)
    """,
    re.VERBOSE,
)
"""A redirect counts as harmless where it joins two of the command's own streams or throws one away."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", re.ASCII)


def simple_commands(command: str) -> list[tuple[str, ...]] | None:
    """Return the words of each simple command, after quote removal, or None where anything else is in the line.

    The commands may be joined by `&&`, `||`, `;`, `|` and line ends. Variables, substitutions, redirects to files,
    background, groups, comments and assignments are not simple.
    """
    commands: list[list[str]] = [[]]
    word: str | None = None
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            return None
        position = match.end()
        kind = match.lastgroup
        if kind in ("single", "double", "escape", "plain"):
            word = (word or "") + _unquoted(match.group(), str(kind))
            continue
        if word is not None:
            if kind == "harmless" and match.group()[0].isdigit():
                return None  # the digit belongs to the word before it
            commands[-1].append(word)
            word = None
        if kind == "operator":
            commands.append([])
    if word is not None:
        commands[-1].append(word)
    if len(commands) > 1 and not commands[-1] and command.rstrip(" \t").endswith((";", "\n")):
        commands.pop()
    if any(not words or _ASSIGNMENT.match(words[0]) for words in commands):
        return None
    return [tuple(words) for words in commands]


def _unquoted(text: str, kind: str) -> str:
    match kind:
        case "single" | "double":
            return text[1:-1]
        case "escape":
            return text[1:]
        case _:
            return text


@dataclass(frozen=True, slots=True)
class CommandPart:
    """Something that the line may run: its words, beginning with the program."""

    words: tuple[str, ...]

    @property
    def is_program_unknown(self) -> bool:
        """Whether the program is only known when the line runs."""
        return self.words[0] not in ("[", "[[") and bool(_DYNAMIC.search(self.words[0]))

    @property
    def are_arguments_unknown(self) -> bool:
        """Whether any word behind the program is only known when the line runs."""
        return any(_DYNAMIC.search(word) for word in self.words[1:])


_DYNAMIC = re.compile(r"[$*?\[{]")
_SEPARATORS = re.compile(r"[;&|\n\r()]")
_REDIRECT = re.compile(r"(?:(?<!\S)\d+)?(?:>>?\|?|<>|<<?<?-?)[ \t]*[^\s;&|()<>]*")
_DUPLICATION = re.compile(r"(?:(?<![^\s;&|()])\d+)?[<>]&[\d-]+")
_QUOTES = re.compile(r"""['"\\]""")
_KEYWORDS = frozenset({
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time", "coproc", "case", "esac",
    "in", "function", "for", "select",
})  # fmt: skip
_WRAPPERS = frozenset({
    "bash", "sh", "dash", "zsh", "ksh", "fish", "busybox", "sudo", "doas", "su", "env", "eval", "exec", "command",
    "builtin", "nohup", "nice", "ionice", "timeout", "stdbuf", "setsid", "xargs", "find", "fd", "parallel", "watch",
    "strace", "ltrace", "time", "script", "ssh", "chroot", "unshare", "nsenter", "bwrap", "flock", "entr", "trap",
    "alias", "uv", "uvx", "npx", "pixi", "conda", "poetry", "docker", "podman",
})  # fmt: skip
"""Programs that run other programs which their arguments name."""
_MOST_WORDS = 20_000
"""Words looked at in all parts together; behind a wrapper each word begins a part of its own."""
_MOST_OPTION_WORDS = 12
"""Words looked at behind the first option of a program for its subcommand."""


def command_parts(command: str) -> list[CommandPart]:
    """Return everything that the line may run, and more: each part, and behind a wrapper what starts at each word."""
    # A substitution leaves a `$` word behind, so that what surrounds it is seen to be unknown.
    text = command.replace("\\\n", "").replace("`", " ; $ ; ").replace("$(", "$ (")
    text = _DUPLICATION.sub(" ", text).replace("&>", ">").replace(">&", ">").replace("<&", "<")
    parts: dict[tuple[str, ...], None] = {}
    count = 0
    for piece in _SEPARATORS.split(text):
        words = _QUOTES.sub("", _REDIRECT.sub(" ", piece)).split()
        for start in _starts(words):
            program = PurePosixPath(words[start]).name or words[start]
            parts[tuple(words[start:])] = None
            for following in (start + 1, *_behind_options(words, start + 1)):
                parts[(program, *words[following:])] = None
                count += len(words) - following + 1
            if count > _MOST_WORDS:
                return [CommandPart(("$",)), *map(CommandPart, parts)]  # too many to look at: treated as unknown
    return [CommandPart(words) for words in parts]


def _behind_options(words: list[str], position: int) -> range:
    """Return where a subcommand may begin behind the options of its program, as in `git -C folder push`."""
    if position < len(words) and words[position].startswith("-"):
        return range(position + 1, min(len(words), position + _MOST_OPTION_WORDS))
    return range(0)


def _starts(words: list[str]) -> range:
    """Return the positions of the words that may be a program's name."""
    first = 0
    while first < len(words) and (words[first] in _KEYWORDS or _ASSIGNMENT.match(words[first])):
        first += 1
    if first == len(words):
        return range(0)
    is_wrapper = PurePosixPath(words[first]).name in _WRAPPERS
    return range(first, len(words) if is_wrapper else first + 1)
