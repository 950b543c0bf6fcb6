"""The commands of a line as rules see them: strictly for those that allow, generously for those that ask or deny.

The rule: it never gives up, and takes apart more than a shell would, so that nothing slips past a restriction by
quotes, wrappers or separators.

The rule: it gives up (None) on whatever it does not understand completely, so that an allowance is never widened by
shell syntax. It is no shell, and reads more than what may run without asking, such as globs: the user's own rule has to
name each program that it finds.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_TOKEN = compile_late(
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
_MAY_ASSIGN = compile_late(r"[A-Za-z_]\w*(\[|\+?=)", re.ASCII)
KEYWORDS = frozenset({
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time", "coproc", "case", "esac",
    "in", "function", "for", "select",
})  # fmt: skip
"""Words of the grammar that may be in the place of a program."""
_EVALUATING = frozenset({
    "test", "[", "printf", "read", "mapfile", "readarray", "unset", "let", "wait", "declare", "typeset", "local",
    "export", "readonly", "getopts",
})  # fmt: skip
"""Builtins that take words for variables or numbers, and run the command in a subscript such as `a[$(rm x)]`."""
_SUBSTITUTION = compile_late(r"[$`]")

MOST_REMEMBERED = 16
"""Lines whose parts are kept, since each rule asks for those of the same line."""

LIVE_TILDE = "\x01"
"""Mark in a word for a tilde that the shell may replace with a home."""
LIVE = "\x02"
"""Mark in a word for characters that the shell may replace with names of files."""
_LIVE_TILDE = compile_late(r"(?:^|(?<=[:=]))~")


@lru_cache(MOST_REMEMBERED)
def simple_commands(command: str) -> Sequence[tuple[str, ...]] | None:
    """Return the words of each simple command, after quote removal, or None if anything else is in the line.

    The commands may be joined by `&&`, `||`, `;`, `|` and line ends. Variables, substitutions, braces, redirects to
    files, background, groups, keywords, comments and assignments are not simple. Of what a shell expands, only unquoted
    globs and tildes are left, and they are no text of the word: `LIVE` and `LIVE_TILDE` take their place, which no
    quoting can write.
    """
    commands: list[list[_Word]] = [[]]
    word: _Word | None = None
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            return None
        position = match.end()
        kind = match.lastgroup
        if kind in ("single", "double", "escape", "plain"):
            word = word or _Word()
            word.add(match.group(), kind)
            continue
        if word is not None:
            if kind == "harmless" and (match.group()[0].isdigit() or word.written.isdigit()):
                return None  # the digit may belong to the word, or the word to the redirect
            commands[-1].append(word)
            word = None
        if kind == "operator":
            commands.append([])
    if word is not None:
        commands[-1].append(word)
    if len(commands) > 1 and not commands[-1] and command.rstrip(" \t").endswith((";", "\n")):
        commands.pop()
    if any(not words or words[0].begins_no_simple_command or _is_evaluated_again(words) for words in commands):
        return None
    return [tuple(word.text for word in words) for words in commands]


def has_live_words(words: Iterable[str]) -> bool:
    """Return whether the shell may put something else in the place of any of `words`."""
    return any(LIVE in word or LIVE_TILDE in word for word in words)


def has_live_tilde(words: Iterable[str]) -> bool:
    """Return whether the shell may put a folder in the place of a tilde in any of `words`."""
    return any(LIVE_TILDE in word for word in words)


class _Word:
    """A word while it is read."""

    def __init__(self) -> None:
        self.written = ""
        """All of it, after quote removal."""
        self._text = ""
        self._is_bare = True
        self._is_in_bracket = False

    def add(self, piece: str, kind: str) -> None:
        """Add a piece as written in the line."""
        literal = {"single": piece[1:-1], "double": piece[1:-1], "escape": piece[1:]}.get(kind, piece)
        self._is_bare = self._is_bare and kind == "plain"
        if kind == "plain":
            before, bracket, _ = piece.partition("[")
            last = self.written[-1:]  # the character before a tilde decides whether it expands
            text = _LIVE_TILDE.sub(LIVE_TILDE, last + before)[len(last) :]
            text = text.replace("*", LIVE).replace("?", LIVE) + (LIVE if bracket else "")
        else:
            bracket, text = "", literal
        if not self._is_in_bracket:  # the closing bracket is not searched for, so the rest of the word belongs to it
            self._text += text
        self._is_in_bracket = self._is_in_bracket or bool(bracket)
        self.written += literal

    @property
    def text(self) -> str:
        """The word, with marks for what is live in it."""
        return "[" if self.written == "[" else self._text

    @property
    def begins_no_simple_command(self) -> bool:
        """True if it is a keyword or an assignment."""
        return (self._is_bare and self.written in (*KEYWORDS, "[[")) or _MAY_ASSIGN.match(self.written) is not None


def _is_evaluated_again(words: list[_Word]) -> bool:
    return words[0].written in _EVALUATING and any(_SUBSTITUTION.search(word.written) for word in words)


@dataclass(frozen=True, slots=True)
class CommandPart:
    """Something that the line may run: its words, beginning with the program."""

    words: tuple[str, ...]

    @property
    def is_program_unknown(self) -> bool:
        """True if the program is only known when the line runs."""
        return self.words[0] not in ("[", "[[") and bool(_DYNAMIC.search(self.words[0]))

    @property
    def are_arguments_unknown(self) -> bool:
        """True if any word behind the program is only known when the line runs."""
        return any(_DYNAMIC.search(word) for word in self.words[1:])


_ASSIGNMENT = compile_late(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=", re.ASCII)
_DYNAMIC = compile_late(r"[$*?\[{]|^~|[:=]~")
_SEPARATORS = compile_late(r"[;&|\n\r()]")
_REDIRECT = compile_late(r"(?:(?<!\S)\d+)?(?:>>?\|?|<>|<<?<?-?)[ \t]*[^\s;&|()<>]*")
_DUPLICATION = compile_late(r"(?:(?<![^\s;&|()])\d+)?[<>]&[\d-]+")
_QUOTED = compile_late(r"""'[^']*'|"(?:\$\{[^}]{0,200}\}|[^"\\]|\\.)*+"|\\.|\$\{[^}]{0,200}\}""", re.DOTALL)
_PARTING = compile_late(r"[\s;&|()<>`]")
_BEFORE_FED = compile_late(r"[<>!]")
_OPERATORS = compile_late(r"([;&|<>()]+)")
_QUOTES = compile_late(r"""['"\\]""")
_WRAPPERS = frozenset({
    "bash", "sh", "dash", "zsh", "ksh", "fish", "busybox", "sudo", "doas", "su", "env", "eval", "exec", "command",
    "builtin", "nohup", "nice", "ionice", "timeout", "stdbuf", "setsid", "xargs", "find", "fd", "parallel", "watch",
    "strace", "ltrace", "time", "script", "ssh", "chroot", "unshare", "nsenter", "bwrap", "flock", "entr", "trap",
    "alias", "uv", "uvx", "npx", "pixi", "conda", "poetry", "docker", "podman", "ash", "mksh", "csh", "tcsh", "rbash",
    "toybox", "runuser", "pkexec", "sg", "chrt", "taskset", "setarch", "prlimit", "numactl", "systemd-run", "unbuffer",
    "rlwrap", "chronic", "tmux", "screen", "dbus-run-session", "compgen", "mapfile", "readarray", "firejail", "proot",
    "fakeroot", "function", "coproc", "mamba", "micromamba", "pdm", "hatch", "pipenv", "rye", "pipx", "pnpx", "bunx",
    "bundle", "mise", "direnv", "dotenv", "nix", "nix-shell", "setpriv", "sshpass", "cgexec", "kubectl", "oc", "lxc",
    "nerdctl", "machinectl", "capsh", "gosu", "tini", "dumb-init", "catchsegv", "valgrind", "perf", "heaptrack", "rr",
    "hyperfine", "torsocks", "proxychains", "proxychains4", "faketime", "xvfb-run", "dbus-launch", "daemonize",
})  # fmt: skip
"""Programs that run other programs which their arguments name."""
_LOADER = compile_late(r"ld(?:-linux|-musl|64|\.so|-[0-9]).*")
"""The loader of the system, which runs the program that it is given."""
_RUNNERS: Mapping[str, frozenset[str]] = {
    "npm": frozenset({"exec", "x", "explore"}),
    "pnpm": frozenset({"exec", "x", "dlx"}),
    "yarn": frozenset({"exec", "dlx"}),
    "bun": frozenset({"x"}),
    "gem": frozenset({"exec"}),
}
"""Programs that do so behind one of these words alone; their others are named like programs, such as `npm rm`."""
_SHELLS = frozenset({
    "bash", "sh", "dash", "zsh", "ksh", "fish", "ash", "mksh", "csh", "tcsh", "rbash", "at", "batch", "source", ".",
    "ed", "ex", "vi", "vim", "gdb", "lldb", "expect", "tclsh", "sqlite3", "psql", "mysql", "ftp", "sftp", "dc",
})  # fmt: skip
"""Programs that run what they read, or lines in it."""
_SED = frozenset({"sed", "gsed"})
_HIDING: Sequence[tuple[frozenset[str], tuple[str, ...]]] = (
    (frozenset({"git"}), ("alias.", "-calias.")),
    (frozenset({"git", "submodule", "foreach"}), ()),
    (frozenset({"git", "bisect", "run"}), ()),
    (frozenset({"git", "rebase"}), ("-x", "--ex")),
    (frozenset({"make"}), ("SHELL=",)),
    (frozenset({"rsync"}), ("-", "--rsh")),
    (frozenset({"ssh"}), ("-o", "ProxyCommand")),
    (frozenset({"scp"}), ("-S", "-o")),
    (frozenset({"sftp"}), ("-S", "-o", "-D")),
    (frozenset({"env"}), ("-",)),
    (frozenset({"tar"}), ("--to-c", "--ch", "--us", "--rs", "--inf", "--ne", "-I", "-F")),
    (frozenset({"sort"}), ("--comp",)),
    (frozenset({"rg"}), ("--pre", "--hostname-bin")),
    *((frozenset({name}), ()) for name in ("ed", "ex", "expect", "gdb", "gvim", "lldb", "nvim", "vi", "view", "vim")),
)
"""Words of commands that run a line which they are given, and how one of their words begins then."""
_NAMES_A_COMMAND = compile_late(
    r"\w*(?:PAGER|EDITOR|VISUAL|COMMAND|CMD|SHELL|BROWSER|RSH|SSH|ASKPASS|LESSOPEN|LESSCLOSE|DIFF|WRAPPER|LAUNCHER"
    r"|FORMATTER|OPENER|HOOK|EXEC|RUNNER)\+?=.*",
    re.ASCII | re.DOTALL,
)
"""The setting of a variable whose value programs run, to judge by its name."""
_SED_RUNS = compile_late(r"(?:^|[\s'\";{}$/0-9!])e[ \t]+\S|[^\w\s][gpiIMm0-9]*e[gpiIMm0-9]*(?=$|[\s'\";}])")
"""Commands of sed that run a line: `1e rm x`, `s/.*/rm x/e`."""
_BEFORE_LINE = compile_late(r"[=!]|(?<=\s)-[A-Za-z]{0,9}[Sxe](?=['\"])")
_NO_WORD = compile_late(r"[^\w./~+:@%,-]+")
_MOST_WORDS_WITHIN = 200
_FED = compile_late(r"[|<]")
_MOST_WORDS = 20_000
"""Words looked at in all parts together; behind a wrapper each word begins a part of its own."""
_ADDS_WORDS = frozenset({"parallel", "xargs"})
"""Programs that give further words to what they run."""
_UNKNOWN_WORD = "$"
_MOST_OPTION_WORDS = 12
"""Words looked at behind the first option of a program for its subcommand."""


@lru_cache(MOST_REMEMBERED)
def command_texts(command: str) -> Sequence[str]:
    """Return the line and each of its parts, with one blank between words."""
    return tuple(
        " ".join(text.split()) for text in (command, *(" ".join(part.words) for part in command_parts(command)))
    )


@lru_cache(MOST_REMEMBERED)
def texts_within(text: str) -> Sequence[str]:
    """Return the commands that a program might run if it took lines out of a text: one from each of its words on."""
    words = _NO_WORD.sub(" ", text).split()[:_MOST_WORDS_WITHIN]
    return tuple(" ".join((_program(words[at]), *words[at + 1 :])) for at in range(len(words)))


@lru_cache(MOST_REMEMBERED)
def normalise_line(command: str) -> str:
    """Return the line without quotes and with one blank around words and operators: how else it could be spelled."""
    return " ".join(_OPERATORS.sub(r" \1 ", _QUOTES.sub("", command.replace("\\\n", ""))).split())


@lru_cache(MOST_REMEMBERED)
def programs_with_unknown_words(command: str) -> Collection[str] | None:
    """Return the programs some of whose words are only known when the line runs; None if a program is, too."""
    parts = command_parts(command)
    if any(part.is_program_unknown for part in parts):
        return None
    return frozenset(part.words[0] for part in parts if part.are_arguments_unknown)


@lru_cache(MOST_REMEMBERED)
def command_parts(command: str) -> Sequence[CommandPart]:
    """Return everything that the line may run, and more: each part, and behind a wrapper what starts at each word."""
    return tuple(_parts(command))


def _parts(command: str) -> list[CommandPart]:
    parts: dict[tuple[str, ...], None] = {}
    count = 0
    for words, starts in _word_lists(command):
        for start in starts:
            program = _program(words[start])
            parts[tuple(words[start:])] = None
            if not _ADDS_WORDS.isdisjoint(words[:start]):
                parts[(*words[start:], _UNKNOWN_WORD)] = None
            for following in (start + 1, *_behind_options(words, start + 1)):
                parts[(program, *words[following:])] = None
                count += len(words) - following + 1
            if count > _MOST_WORDS:
                return [
                    CommandPart((_UNKNOWN_WORD,)),
                    *map(CommandPart, parts),
                ]  # too many to check: treated as unknown
    return [CommandPart(words) for words in parts]


def _word_lists(command: str) -> Iterator[tuple[list[str], range]]:
    """Yield the words of each piece of the line, and the positions where what it runs may begin."""
    pieces = list(_pieces(command))
    feeds_a_shell = False
    for piece in pieces:
        words = _QUOTES.sub("", _REDIRECT.sub(" ", piece)).split()
        starts = _starts(words)
        feeds_a_shell = feeds_a_shell or any(_program(words[start]) in _SHELLS for start in starts)
        yield words, starts
        if _hides_a_line(words) or (_SED.intersection(map(_program, words)) and _SED_RUNS.search(piece)):
            parted = _QUOTES.sub("", _BEFORE_LINE.sub(" ", piece)).split()
            yield parted, range(len(parted))
            parted = _NO_WORD.sub(" ", piece).split()
            yield parted, range(len(parted))
        if "-delete" in words and "find" in map(_program, words):
            yield ["rm", *words], range(1)  # rules name this as rm
    if feeds_a_shell and _FED.search(command):
        for piece in pieces:
            words = _QUOTES.sub("", _BEFORE_FED.sub(" ", piece)).split()
            yield words, range(len(words))


def _hides_a_line(words: Sequence[str]) -> bool:
    """Return whether a command line may be hidden in a word that is a setting or an argument to most other programs."""
    programs = {_program(word) for word in words}
    return any(map(_NAMES_A_COMMAND.match, words)) or any(
        needed <= programs and (not beginnings or any(word.startswith(beginnings) for word in words))
        for needed, beginnings in _HIDING
    )


def _pieces(command: str) -> Iterator[str]:
    """Yield the text between separators: as it is, and with blanks and separators in quotes taken for letters.

    Only the first finds what a quoted command line runs, and only the second where a quoted word ends. Quotes are
    paired in the whole and within each line, so that a stray one in a comment does not turn them inside out for good.
    """
    joined = command.replace("\\\n", "")
    quoted = _QUOTED.sub(_as_one_word, joined)
    lines = (_QUOTED.sub(_as_one_word, line) for line in joined.split("\n")) if "\n" in joined else ()
    for form in dict.fromkeys((joined, quoted, *lines)):
        # Leave a `$` word in place of a substitution, so that the words around it count as unknown.
        text = form.replace("`", " ; $ ; ").replace("$(", "$ (")
        text = _DUPLICATION.sub(" ", text).replace("&>", ">").replace(">&", ">").replace("<&", "<")
        yield from _SEPARATORS.split(text)


def _as_one_word(quoted: re.Match[str]) -> str:
    return _PARTING.sub("_", quoted[0])


def _program(word: str) -> str:
    return (PurePosixPath(word).name or word) if "/" in word or word == "." else word


def _behind_options(words: list[str], position: int) -> range:
    """Return where a subcommand may begin behind the options of its program, as in `git -C folder push`."""
    if position < len(words) and words[position].startswith("-"):
        return range(position + 1, min(len(words), position + _MOST_OPTION_WORDS))
    return range(0)


def _starts(words: list[str]) -> range:
    """Return the positions of the words that may be a program's name."""
    first = 0
    is_wrapper = False
    while first < len(words) and (words[first] in KEYWORDS or _ASSIGNMENT.match(words[first])):
        is_wrapper = is_wrapper or words[first] in _WRAPPERS
        first += 1
    if first == len(words):
        return range(0)
    program = _program(words[first])
    is_wrapper = is_wrapper or program in _WRAPPERS or not _RUNNERS.get(program, frozenset()).isdisjoint(words)
    is_wrapper = is_wrapper or _LOADER.fullmatch(program) is not None
    return range(first, len(words) if is_wrapper else first + 1)
