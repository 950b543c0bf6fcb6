"""What a call is, as rules see it: the tool, what it would touch, and the words that matter.

Everything is taken from the validated arguments, and each path is located once.
"""

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from anyio import to_thread

from panpan.core.hooks import ToolCall
from panpan.errors import ToolError
from panpan.services.permissions.live_patterns import matches
from panpan.system.paths import Location, PathResolver
from panpan.system.protected import plain_names
from panpan.tools.shell.analysis.facts import Effect, LineFacts, SimpleCommand, Word
from panpan.tools.tool import PathUse, ToolClass
from panpan.types.dataclass import dataclass

_TAKES_FOLDERS = frozenset({"rm", "mv"})
"""Programs that take a folder away with all that is in it."""
_LEADS_TO = frozenset({"cd", "link", "ln"})
"""Programs behind which another name, or a bare one, stands for what they are given."""
_SHELLS = frozenset({"bash", "dash", "eval", "fish", "ksh", "sh", "zsh"})
"""Programs that take a word for a command line."""
_PARTING = re.compile(r"""[\s'";&|<>()=`$]+""")
_VALUE = re.compile(r"(?<=[=\s])\S+")
_MOST_MATCHES = 2_000
"""Names looked at of those that a pattern in a command matches."""
_LIVE = frozenset("*?[")
"""Characters with which a command may name more files than it has words."""
_MOST_QUICK_CHARS = 1_000
"""Of a command that is looked at without a worker thread, which costs more than the look."""
_QUOTES = re.compile(r"""["'\\]""")
_HOME = re.compile(r"^\$(?:HOME\b|\{HOME\})")


@dataclass(frozen=True, slots=True)
class LocatedUse:
    """A path that the call would touch, and where it really is."""

    use: PathUse
    location: Location
    spellings: tuple[Path, ...]
    """The canonical path, and the absolute path as written where that differs."""

    @property
    def path(self) -> Path:
        """The canonical path."""
        return self.location.path

    @property
    def is_write(self) -> bool:
        """Whether the call would change it."""
        return self.use.access == "write"

    @property
    def is_open(self) -> bool:
        """Whether the path may be touched without a question about where it lies."""
        return self.location.is_inside if self.is_write else self.location.is_readable

    @property
    def needs_a_person(self) -> bool:
        """Whether no rule, mode or flag may open it: it may hold secrets, or is protected and would be changed."""
        return self.location.is_secret or (self.is_write and self.location.is_protected)


@dataclass(frozen=True, slots=True)
class Subject:
    """One call, as far as permissions are concerned."""

    tool: str
    tool_class: ToolClass
    is_read_only: bool
    uses: tuple[LocatedUse, ...]
    root: Path
    """Canonical root of the project; patterns start from it."""
    cwd: Path
    """Where relative paths start."""
    command: str | None = None
    """The command line, for Bash."""
    url: str | None = None
    """The address, for WebFetch."""
    names: tuple[str, ...] = ()
    """What an agent or skill is called."""
    facts: LineFacts | None = None
    """What the command line would do, for Bash."""
    mentioned: tuple[LocatedUse, ...] = ()
    """Protected paths among the words of commands of which it is not known what they do to them, or in a folder that
    one takes away."""

    @property
    def only_looks(self) -> bool:
        """Whether it is a command line of which it is known that it does nothing but look."""
        return self.facts is not None and self.facts.is_read_only

    @property
    def effects(self) -> Sequence[Effect]:
        """What each part of the command line would do; empty for what is none."""
        return self.facts.effects if self.facts is not None else ()

    @property
    def protected(self) -> list[LocatedUse]:
        """What only a person may open."""
        return [use for use in (*self.uses, *self.mentioned) if use.needs_a_person]


async def subject_of(call: ToolCall) -> Subject:
    """Return what permissions have to know about `call`; where that may take long, a worker thread finds it out.

    Raises:
        ToolError: A path of the call cannot be used.
    """
    if _may_take_long(_command_of(call) or ""):
        return await to_thread.run_sync(_subject_of, call, abandon_on_cancel=True)
    return _subject_of(call)


def _subject_of(call: ToolCall) -> Subject:
    paths = call.context.paths
    command = _command_of(call)
    facts = _facts_of(command) if command is not None else None
    uses = tuple(located(use, paths) for use in call.tool.path_uses(call.args))
    return Subject(
        tool=call.tool.name,
        tool_class=call.tool.tool_class,
        is_read_only=call.tool.is_read_only(call.args),
        uses=uses,
        root=paths.root,
        cwd=paths.cwd,
        command=command,
        url=_text(call, "url") if call.tool.name == "WebFetch" else None,
        names=tuple(name for key in ("subagent_type", "agent", "skill", "name") if (name := _text(call, key))),
        facts=facts,
        mentioned=tuple(_mentioned(facts, uses, paths)) if facts is not None else (),
    )


def _may_take_long(command: str) -> bool:
    """Return whether it may name many files: in many words, or in a pattern."""
    if len(command) > _MOST_QUICK_CHARS:
        return True
    if _LIVE.isdisjoint(command):
        return False
    effects = [effect for effect in _facts_of(command).effects if not effect.is_read_only]
    return any(word.is_glob for effect in effects for word in _words(effect.command))


def _command_of(call: ToolCall) -> str | None:
    return _text(call, "command") if call.tool.name == "Bash" else None


def _facts_of(command: str) -> LineFacts:
    from panpan.tools.shell.analysis.analyse import analyse  # no session needs it before its first command

    return analyse(command)


def located(use: PathUse, paths: PathResolver) -> LocatedUse:
    """Return the path with where it really is.

    Raises:
        ToolError: It cannot be used.
    """
    location = paths.locate(use.path)
    written = Path(os.path.normpath(paths.absolute(use.path)))
    spellings = (location.path,) if written == location.path else (location.path, written)
    return LocatedUse(use, location, spellings)


def _mentioned(facts: LineFacts, uses: Sequence[LocatedUse], paths: PathResolver) -> Iterator[LocatedUse]:
    """Yield the protected paths that the line names for commands which may do anything with them.

    Args:
        facts: What the line would do.
        uses: What is located of it already.
        paths: Locates the rest.
    """
    if facts.is_read_only:
        return
    known = {use.use.path: use for use in uses}
    for name in dict.fromkeys(name for effect in facts.effects for name in _names(effect, paths)):
        with suppress(ToolError):  # no path that could be touched
            written = PathUse(name, "write")
            found = known.get(name)
            use = LocatedUse(written, found.location, found.spellings) if found else located(written, paths)
            if use.needs_a_person:
                yield use


def _names(effect: Effect, paths: PathResolver) -> Iterator[str]:
    """Yield the paths that a command may do anything with."""
    command = effect.command
    words = _words(command)
    matched = () if effect.is_read_only else tuple(_matched(words, command, paths))
    yield from map(str, matched)
    yield from _assigned(command)
    yield from _in_words_for_shells(words)
    if effect.placed_writes is None or effect.runs_code is not False or effect.program in _LEADS_TO:
        yield from _used_unseen(effect, words)
    elif effect.program in _TAKES_FOLDERS:
        yield from _taken_with_folders(command, matched, paths)


def _matched(words: Sequence[Word], command: SimpleCommand, paths: PathResolver) -> Iterator[Path]:
    """Yield what the patterns of a command match."""
    for pattern in command.placed_patterns(word.pattern for word in words if word.is_glob):
        yield from islice(matches(pattern, paths.cwd), _MOST_MATCHES)


def _assigned(command: SimpleCommand) -> Iterator[str]:
    """Yield the values of what may be variables that it sets."""
    for value in command.assignments and _VALUE.findall(command.source):
        yield _QUOTES.sub("", value)


def _in_words_for_shells(words: Sequence[Word]) -> Iterator[str]:
    """Yield the parts of words which a shell among the words would take for command lines."""
    texts = [word.text for word in words if word.text]
    if any(text.rpartition("/")[2] in _SHELLS for text in texts):
        yield from (part for text in texts if " " in text for part in _PARTING.split(text) if part)


def _used_unseen(effect: Effect, words: Sequence[Word]) -> Iterator[str]:
    """Yield what the words may name of which it is not known what becomes of it."""
    folders = _folders(effect.command)
    yield from (posixpath.join(folder, word) for word in effect.mentions for folder in folders)
    for word in words:
        if word.text is None:  # what can be seen of it may tell the place, or the name
            name = _HOME.sub("~", _QUOTES.sub("", word.source))
            yield from [name] if name.startswith("~") else (posixpath.join(folder, name) for folder in folders)


def _taken_with_folders(command: SimpleCommand, matched: Sequence[Path], paths: PathResolver) -> Iterator[str]:
    """Yield what bears a protected name in the folders that a command takes away."""
    texts = [word.text for word in command.words[1:] if word.text]
    named = (paths.cwd / folder / text for text in texts for folder in _folders(command))
    for place in (*matched, *named):
        if place.is_dir():
            yield from (str(place / name) for name, _ in plain_names() if os.path.lexists(place / name))


def _words(command: SimpleCommand) -> Sequence[Word]:
    """Return its words, the targets of its redirects among them."""
    return (*command.words, *(redirect.target for redirect in command.redirects))


def _folders(command: SimpleCommand) -> Sequence[str]:
    """Return where a command may run, relative to where the line starts; there, where that is not known."""
    return command.directories or (".",)


def _text(call: ToolCall, name: str) -> str | None:
    value = getattr(call.args, name, None)
    return value if isinstance(value, str) else None
