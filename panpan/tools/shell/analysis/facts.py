"""What is known of a command line before it runs: the words between parser, table of programs and gate.

The rule: everything may be "unknown", and unknown is never taken for harmless. None always means unknown; an empty
tuple means that there is nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a simple command."""

    source: str
    """As it stands in the line."""
    text: str | None
    """After quote removal, where it is one fixed word whatever the environment and the files are; None where the shell
    would expand it: variables, substitutions, live globs, braces, tildes."""
    is_glob: bool = False
    """Whether the only thing that is not fixed are the names that a live `*`, `?` or `[…]` matches, so that it stands
    for file names that fit `pattern`."""
    pattern: str = ""
    """For a glob: what the names fit, quoted parts escaped with a backslash."""


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
    """The program first; empty where there are only redirects."""
    redirects: tuple[Redirect, ...] = ()
    assignments: tuple[str, ...] = ()
    """Names of variables that are set for it, or in the shell where there are no words."""
    directory: str | None = "."
    """The working directory when it runs, relative to that of the line, after the `cd`s before it; None: unknown."""

    @property
    def texts(self) -> tuple[str, ...] | None:
        """The words as text; None where one of them is not fixed."""
        texts = tuple(word.text for word in self.words if word.text is not None)
        return texts if len(texts) == len(self.words) else None


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """A command line, taken apart."""

    commands: tuple[SimpleCommand, ...]
    """Every simple command that may run, in the order in which they stand, those in substitutions, loops, functions and
    branches too."""
    oddities: tuple[str, ...] = ()
    """What is in it beside simple commands joined by `|`, `&&`, `||`, `;` and line ends, each in a few words,
    such as "a loop" or "what could not be parsed: `<<<`". A line with any is never read-only."""

    @property
    def is_plain(self) -> bool:
        """Whether it is nothing but simple commands joined by pipes, `&&`, `||`, `;` and line ends."""
        return not self.oddities


@dataclass(frozen=True, slots=True)
class Effect:
    """What one simple command would do."""

    command: SimpleCommand
    program: str | None
    """Its name, as the shell looks it up on a PATH without the workspace, or its absolute path; None: unknown.
    A program that lies in the workspace is unknown: its name says nothing."""
    reads: tuple[str, ...] | None
    """Paths as the shell would pass them, relative to the directory of the command; a glob as its folder."""
    writes: tuple[str, ...] | None
    runs_code: bool | None
    """Whether it runs code that is not its own: scripts, other programs, configuration of the folder, pagers."""
    uses_network: bool | None
    why: str
    """Which row of the table, or which assumption, says so; one sentence for the user."""

    @property
    def is_read_only(self) -> bool:
        """Whether it is known to change nothing, run nothing else, and stay off the network."""
        return self.reads is not None and self.writes == () and self.runs_code is False and self.uses_network is False


@dataclass(frozen=True, slots=True)
class LineFacts:
    """What a command line would do."""

    line: ParsedLine
    effects: tuple[Effect, ...]
    """One for each simple command, in their order."""

    @property
    def is_read_only(self) -> bool:
        """Whether every part of it is known and only looks."""
        return self.line.is_plain and bool(self.effects) and all(effect.is_read_only for effect in self.effects)

    @property
    def reads(self) -> Sequence[str]:
        """Paths that it is known to read, relative to the directory in which the line starts."""
        return tuple(dict.fromkeys(path for effect in self.effects for path in effect.reads or ()))

    @property
    def writes(self) -> Sequence[str]:
        """Paths that it is known to write, redirects among them, relative to the directory in which the line starts."""
        return tuple(dict.fromkeys(path for effect in self.effects for path in effect.writes or ()))
