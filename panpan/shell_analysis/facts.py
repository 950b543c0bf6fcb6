"""Facts about a command line before it runs: the vocabulary of the parser, the table of programs and the gate.

The rule: everything may be "unknown", and unknown is never taken for harmless. None always means unknown; an empty
tuple means that there is nothing.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from panpan.errors import ToolError
from panpan.system.files.canonical import user_home
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

SIGNED_NAME = compile_late(r"^[-+@]")
"""A path that a program may take for more than one: for a flag, a place, or a file of further arguments."""
PARTED_NAME = compile_late(r"""[\s'"\\]""")
"""A path that xargs takes apart where it is not told to take paths as they are."""
SPLIT_NAME = compile_late(f"{SIGNED_NAME.pattern}|{PARTED_NAME.pattern}")
"""A path of either kind."""
QUOTED_NAME = compile_late(rf"{SPLIT_NAME.pattern}|[^\x00-\x7f]")
"""A path of either kind, or one that git puts in quotes."""
BARE_NAME = compile_late(rf"(?:^|/)[-+@]|{PARTED_NAME.pattern}")
"""A path of either kind, if names are printed without the folder that they are in."""
UNSIGNED_NAMES = "[!+@-]*"
"""The pattern of all other names than signed ones."""


class TooNestedError(ToolError):
    """A command line nests too much in itself to be judged, so that it cannot run."""

    def __init__(self) -> None:
        super().__init__("the command nests too much in itself to be judged; write it as several calls or as a script")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a simple command."""

    source: str
    """The word as written in the line."""
    text: str | None
    """The word after quote removal, if it is one fixed word whatever the environment and the files are. None if the
    shell would expand it: variables, substitutions, live globs, braces, tildes."""
    is_glob: bool = False
    """True if the only thing that is not fixed are the names that a live `*`, `?` or `[…]` matches, so that it
    becomes file names that fit `pattern`."""
    pattern: str = ""
    """Pattern of a glob, with quoted parts escaped by a backslash."""
    at_home: str = ""
    """The word, such as `~/src`, if its leading tilde, for the home, is all that is not fixed; else empty."""
    is_guess: bool = False
    """True if the shell may make something else of it than `text` or `pattern`; see `directories.py`."""

    @property
    def home_path(self) -> str:
        """`at_home` as an absolute path; empty for other words."""
        return f"{user_home()}{self.at_home[1:]}" if self.at_home else ""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect that reads or writes a file; joining streams (`2>&1`) and throwing away (`>/dev/null`) are none."""

    target: Word
    is_write: bool


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One simple command as the shell parsed it: a program, its words, its redirects. Nothing is judged yet."""

    source: str
    words: tuple[Word, ...]
    """The program first; empty if there are only redirects."""
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[str, ...] = ()
    """Names of variables that are set for it, or in the shell where there are no words."""
    directories: tuple[str, ...] | None = (".",)
    """Directories in which it may run after the `cd`s before it, relative to the start of the line; None if unknown.
    There are several if a `cd` may have failed; a statement about the command then has to hold in each."""
    likely: tuple[str, ...] = (".",)
    """Directories in which it probably runs, if `directories` is None. They only make a check stricter."""
    piped_from: "tuple[SimpleCommand, ...]" = field(default=(), compare=False, repr=False)
    """Commands before it in a short pipeline: each prints to the next, and the last one to it; empty if it is long."""
    is_generated: bool = False
    """True if it is no part of the line, but what a shell or `xargs` in the line is given to run."""
    joins_errors: bool = False
    """True if what it says of errors goes where its output goes, or the other way round."""
    assigned: tuple[Word, ...] = ()
    """Values of `assignments`, where the line was read with a place to start in; see `directories.py`."""

    @property
    def written_by_shell(self) -> tuple[str, ...]:
        """The fixed targets of its redirects that are written, as the shell takes them."""
        written = [redirect.target for redirect in self.redirects if redirect.is_write]
        texts = (f"./{word.text}" if (word.text or "").startswith("~") else word.text for word in written)
        return tuple(path for path in (*texts, *(word.home_path for word in written)) if path)

    def placed_patterns(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Return patterns of words, relative to the directory in which the line starts, as far as that is known."""
        folders = (re.sub(r"[\\*?\[\]]", r"\\\g<0>", folder) for folder in self.directories or self.likely)
        return _placed(tuple(patterns), tuple(folders)) or ()

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The words as text; None if one of them is not fixed."""
        texts = tuple(word.text for word in self.words if word.text is not None)
        return texts if len(texts) == len(self.words) else None

    @property
    def known_texts(self) -> list[str]:
        """The words as text; one that is known only when the command runs is empty."""
        return [word.text or "" for word in self.words]


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A command line, taken apart."""

    commands: tuple[SimpleCommand, ...]
    """Every simple command that may run, in their order, with those in substitutions, loops, functions and branches,
    and behind them the commands that a shell or `xargs` is given to run, as far as they are written in the line."""
    oddities: tuple[str, ...] = ()
    """Parts other than simple commands joined by `|`, `&&`, `||`, `;` and line ends, each in a few words, such as "a
    loop" or "what could not be parsed: `<<<`". A line with any is never read-only."""
    runs_input: bool = False
    """True if something in it runs what it is given to read: a shell without a script, an interpreter, `xargs`."""
    runs_unknown_input: bool = False
    """True if a shell or interpreter runs input that is not written in the line: `cat x | bash`."""

    @property
    def is_plain(self) -> bool:
        """True if it is nothing but simple commands joined by pipes, `&&`, `||`, `;` and line ends."""
        return not self.oddities


@dataclass(frozen=True, slots=True)
class Kind:
    """Known behaviour of a program."""

    runs_code: bool | None
    """True if it runs code that is not its own: scripts, other programs, configuration of the folder, pagers."""
    uses_network: bool | None
    why: str = ""
    """The row of the table, or the assumption, that says so; one sentence for the user."""


@dataclass(frozen=True, slots=True)
class Search:
    """Folders whose files a command shows or hands on."""

    folders: tuple[str, ...] = ()
    """Reads that, if they are folders, have the contents of their files shown."""
    only_names: tuple[str, ...] = ()
    """Patterns, one of which the name of each file fits that is shown; empty if they may have any."""
    leaves_out_hidden: bool = False
    """True if nothing is shown that begins with a dot, or lies in a folder that does, but for what an ignore file takes
    in again with a `!`."""
    only_tracked: bool = False
    """True if nothing is shown but files that git tracks."""
    follows_links: bool = False
    """True if it goes through links in the folder, out of it."""
    odd_names: re.Pattern[str] | None = None
    """Found in paths below the folders, relative to these, that its program would not take as they are."""


@dataclass(frozen=True, slots=True)
class ReadDetails:
    """Details of how a command reads what it names."""

    globs: tuple[str, ...] = ()
    """Patterns among its paths, as `Word.pattern`; each may match links, and their folders are among the reads."""
    bare_globs: tuple[str, ...] = ()
    """Patterns among its paths that may match a file named like a flag."""
    opens_nothing: bool = False
    """True if it asks the file system about what it names, and opens none of the files."""
    read_recursively: tuple[Word, ...] = ()
    """Words that may be folders, all in which its program may show, copy or pack; see `words_read_recursively`."""
    asks_git_in: str | None = None
    """The folder in which git is asked about a repository, relative to the directory of the command. It is harmless
    only with the variables of `harmless_git_variables` in system/git/git.py."""
    git_paths: tuple[str, ...] = ()
    """Files that git takes from the top of the repository on, wherever it runs; not among its reads."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one simple command."""

    command: SimpleCommand
    program: str | None
    """Name that the shell looks up on a PATH without the workspace, or an absolute path; None if unknown. A program in
    the workspace is unknown, since its name says nothing."""
    reads: tuple[str, ...] | None
    """Paths as the shell would pass them, relative to the directory of the command; a glob as its folder."""
    writes: tuple[str, ...] | None
    kind: Kind
    search: Search = Search()
    read_details: ReadDetails = ReadDetails()
    needed_environment: Mapping[str, str | None] = field(default_factory=dict)
    """Variables with which it is harmless; one with None must not be set."""
    only_creates: bool = False
    """True if its program makes empty files and folders, and takes nothing away."""
    path_like_words: tuple[str, ...] = ()
    """Every fixed word that could be a path, whatever happens to it; also where reads and writes are unknown."""

    @property
    def runs_code(self) -> bool | None:
        """True if it runs code that is not its own."""
        return self.kind.runs_code

    @property
    def uses_network(self) -> bool | None:
        """True if it uses the network."""
        return self.kind.uses_network

    @property
    def why(self) -> str:
        """Reason for these facts, in one sentence for the user."""
        return self.kind.why

    def with_reason(self, why: str) -> "Effect":
        """Return the same with another reason."""
        return replace(self, kind=replace(self.kind, why=why))

    @property
    def is_read_only(self) -> bool:
        """True if it is known to change nothing, run nothing else, and stay off the network."""
        if not self.only_looks_somewhere:
            return False
        asked = () if self.read_details.asks_git_in is None else (self.read_details.asks_git_in,)
        paths = (*(self.reads or ()), *asked)
        return self.command.directories is not None or all(path.startswith("/") for path in paths)

    @property
    def only_looks_somewhere(self) -> bool:
        """True if it is known to change nothing, run nothing else, and stay off the network, wherever it runs."""
        return self.writes == () and self.reads is not None and self.runs_code is False and self.uses_network is False

    @property
    def only_looks_or_makes(self) -> bool:
        """True if it is known to do nothing but to make empty files and folders, or to look at what it names."""
        if self.is_read_only:
            return not (self.search.folders or self.read_details.globs or self.read_details.asks_git_in)
        is_known = self.placed_reads is not None and self.placed_writes is not None and not self.command.redirects
        return self.only_creates and is_known and self.runs_code is False and self.uses_network is False

    @property
    def placed_reads(self) -> tuple[str, ...] | None:
        """`reads`, relative to the directory in which the line starts; None if unknown."""
        return _placed(self.reads, self.command.directories)

    @property
    def assumed_reads(self) -> Sequence[str]:
        """Paths that it is known to read, as in `LineFacts.reads`."""
        return _placed(self.reads, self.command.directories or self.command.likely) or ()

    @property
    def assumed_writes(self) -> Sequence[str]:
        """Paths that it is known to write, as in `LineFacts.writes`."""
        writes = self.command.written_by_shell if self.writes is None else self.writes
        return _placed(writes, self.command.directories or self.command.likely) or ()

    @property
    def placed_searches(self) -> tuple[str, ...]:
        """Folders of `search`, relative to the directory in which the line starts, as far as that is known."""
        return _placed(self.search.folders, self.command.directories) or ()

    @property
    def assumed_searches(self) -> Sequence[str]:
        """Folders of `search`, as in `assumed_reads`."""
        return _placed(self.search.folders, self.command.directories or self.command.likely) or ()

    @property
    def placed_globs(self) -> tuple[str, ...]:
        """`globs`, relative to the directory in which the line starts, as far as that is known."""
        return self.command.placed_patterns(self.read_details.globs)

    @property
    def git_folders(self) -> Sequence[str]:
        """Folders in which it asks git about a repository, relative to the directory in which the line starts."""
        folder = self.read_details.asks_git_in
        return _placed((folder,), self.command.directories) or () if folder else ()

    @property
    def placed_writes(self) -> tuple[str, ...] | None:
        """`writes`, relative to the directory in which the line starts; None if unknown."""
        return _placed(self.writes, self.command.directories)


@dataclass(frozen=True, slots=True)
class LineFacts:
    """Effects of a command line."""

    line: ParsedLine
    effects: tuple[Effect, ...]
    """Effects of the simple commands, in their order."""
    is_read_only: bool = field(init=False, compare=False)
    """True if every part of it is known and only looks; found out once, since every rule asks."""

    def __post_init__(self) -> None:
        only_looks = self.line.is_plain and bool(self.effects) and all(effect.is_read_only for effect in self.effects)
        object.__setattr__(self, "is_read_only", only_looks)

    @property
    def may_change_reading(self) -> bool:
        """True if it may set options or variables with which its words, or the place of a `cd`, mean something else."""
        from panpan.shell_analysis.shell_changes import may_change_reading  # that module imports these facts

        return any(may_change_reading(effect.command) for effect in self.effects)

    @property
    def only_creates(self) -> bool:
        """True if it does nothing but to make empty files and folders, beside looks at what it names."""
        parts = self.effects
        return (
            self.line.is_plain
            and any(part.only_creates for part in parts)
            and all(p.only_looks_or_makes for p in parts)
        )

    @property
    def reads(self) -> Sequence[str]:
        """Paths that it is known to read, relative to the directory in which the line starts.

        Where it is not known in which directory a command runs, that one is taken for it: what is listed more is only
        looked at with more care.
        """
        return _unique(path for effect in self.effects for path in effect.assumed_reads)

    @property
    def writes(self) -> Sequence[str]:
        """Paths that it is known to write, redirects among them, relative to the directory in which the line starts.

        As with `reads`.
        """
        return _unique(path for effect in self.effects for path in effect.assumed_writes)

    @property
    def git_folders(self) -> Sequence[str]:
        """Folders in which git is asked about a repository, relative to the directory in which the line starts."""
        return _unique(path for effect in self.effects for path in effect.git_folders)

    @property
    def needed_environment(self) -> Mapping[str, str | None]:
        """Variables with which it is as harmless as its effects say; one with None must not be set."""
        return {name: value for effect in self.effects for name, value in effect.needed_environment.items()}


_HERE = (".",)
"""The directories of a command that runs where the line starts."""


def _placed(paths: tuple[str, ...] | None, directories: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return paths relative to where the line starts; None if there is one of which that is not known."""
    if not paths or directories == _HERE:
        return paths
    if directories is None and not all(path.startswith("/") for path in paths):
        return None
    folders = _HERE if directories is None else directories
    return _unique(_joined(folder, path) for folder in folders for path in paths)


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths, each once."""
    return tuple(dict.fromkeys(paths))


def _joined(folder: str, path: str) -> str:
    if folder == "." or path == ".":
        return path if folder == "." else folder
    return posixpath.join(folder, path)
