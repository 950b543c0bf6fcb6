"""Memory files of deeper folders, and rules for certain files: read when the model first touches a file they are for.

Each comes once a session, as a reminder whose cause names it; that is how a resumed session knows what was told.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.to_thread

from panpan.capabilities.project_context.collect import rules_text
from panpan.capabilities.project_context.memory_loader import (
    MemoryLoader,
    MemorySection,
    Withholds,
    files_of,
    fit_to_size,
    folders_between,
    rules_of,
    withhold_nothing,
)
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round, ToolCall
from panpan.errors import ToolError
from panpan.system.files.canonical import is_below
from panpan.system.files.globs import compile_rooted
from panpan.types.dataclass import dataclass
from panpan.types.events import Output
from panpan.types.messages import MEMORY, PROJECT_CONTEXT, Message, SystemReminder
from panpan.types.pattern import compile_late

TellLoaded: TypeAlias = Callable[[Sequence[str], str], Awaitable[None]]
"""Tells of files that the model is told, and why now."""


async def tell_nobody(files: Sequence[str], reason: str) -> None:
    """Tell nobody."""


class NestedMemory(Hook):
    """Adds memory files as the model comes near them."""

    is_for_small_windows = False

    def __init__(
        self,
        root: Path,
        project_root: Path,
        home: Path,
        panpan_home: Path,
        warn: Callable[[str], None],
        withholds: Withholds = withhold_nothing,
        tell: TellLoaded = tell_nobody,
    ) -> None:
        self._warn = warn
        self._tell = tell
        self._root = root
        self._project_root = project_root
        self._loader = MemoryLoader(home, panpan_home, withholds)
        self._lock = anyio.Lock()
        self._looked_in: set[Path] = set()
        self._conditional: list[_Conditional] | None = None
        self._found: list[SystemReminder] = []
        self._told: set[str] = set()
        self._messages_seen = 0

    async def note_loaded(self, paths: Iterable[Path]) -> None:
        """Note memory files, by canonical path, that the model is told of at the start."""
        self._loader.loaded.update(paths)
        await self._tell(sorted(map(str, paths)), "session_start")

    async def after_tool(self, call: ToolCall, output: Output) -> Output:
        if not output.is_error and not call.effects.commands:
            for path in filter(self._may_be_new, self._touched(call)):
                async with self._lock:
                    await anyio.to_thread.run_sync(partial(self._look, path))
        return output

    async def history_replaced(self, conversation: Conversation) -> None:
        """Look for all of it again; what is still in the conversation is not told twice."""
        self._loader.loaded.clear()
        self._looked_in.clear()
        self._conditional = None
        self._found.clear()
        self._told.clear()
        self._messages_seen = 0

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        self._catch_up(round_.conversation)
        found, self._found = self._found, []
        new = [reminder for reminder in found if reminder.cause not in self._told]
        if new:
            await self._tell([reminder.cause.removeprefix(MEMORY) for reminder in new], "nested_traversal")
        return new

    def _may_be_new(self, path: Path) -> bool:
        """True if there may be news for `path`; most files lie where everything is told already."""
        folders = folders_between(self._root, path.parent)[1:]
        return self._conditional is None or bool(self._conditional) or not self._looked_in.issuperset(folders)

    def _touched(self, call: ToolCall) -> list[Path]:
        try:
            locations = [call.context.paths.locate(use.path) for use in call.effects.path_uses]
        except ToolError:
            return []
        return [place.path for place in locations if is_below(place.path, self._root) and place.path.is_file()]

    def _catch_up(self, conversation: Conversation) -> None:
        """Note the files in the conversation; looks only at new messages."""
        messages = conversation.messages
        for message in messages[self._messages_seen :]:
            if isinstance(message, SystemReminder) and message.cause.startswith(MEMORY):
                self._told.add(message.cause)
        self._messages_seen = len(messages)

    def _look(self, path: Path) -> None:
        sections: list[MemorySection] = []
        conditional = self._conditional_rules()
        for folder in folders_between(self._root, path.parent)[1:]:
            if folder in self._looked_in:
                continue
            self._looked_in.add(folder)
            for file in files_of(folder):
                sections += self._loader.load(file, within=self._project_root)
            rules = self._rules(folder)
            sections += [section for section in rules if not section.patterns]
            conditional += self._conditional_of(rules, folder)
        for rule in [rule for rule in conditional if rule.is_for(path)]:
            conditional.remove(rule)
            sections += [rule.section, *self._loader.imports_of(rule.section, within=self._project_root)]
        kept, cuts = fit_to_size(sections)
        self._found += [SystemReminder(text=_text(section, path), cause=f"{MEMORY}{section.path}") for section in kept]
        for warning in (*self._loader.take_warnings(), *cuts):
            self._warn(warning)

    def _conditional_rules(self) -> list["_Conditional"]:
        """Return the untold rules for certain files; those from above are read at the first call."""
        if self._conditional is None:
            self._conditional = [
                rule
                for folder in folders_between(self._project_root, self._root)
                for rule in self._conditional_of(self._rules(folder), folder)
            ]
        return self._conditional

    def _conditional_of(self, rules: Iterable[MemorySection], folder: Path) -> Iterator["_Conditional"]:
        """Yield rules of `folder` that are for certain files; one with unreadable patterns is left out."""
        for section in rules:
            if section.patterns:
                try:
                    yield _Conditional(section, folder)
                except ToolError as exc:
                    self._warn(f"the rules of {section.path} do not count: their paths are not patterns: {exc}")

    def _rules(self, folder: Path) -> list[MemorySection]:
        return [
            section
            for file in rules_of(folder, within=self._project_root)
            for section in self._loader.load_rules(file, within=self._project_root)
        ]


class _Conditional:
    """Rules for the files below `folder` that match their patterns."""

    def __init__(self, section: MemorySection, folder: Path) -> None:
        self.section = section
        self._folder = folder
        self._regexes = list(map(compile_rooted, section.patterns))

    def is_for(self, path: Path) -> bool:
        if not is_below(path, self._folder):
            return False
        relative = path.relative_to(self._folder).as_posix()
        return any(regex.fullmatch(relative) for regex in self._regexes)


def _text(section: MemorySection, path: Path) -> str:
    return f"Rules that people wrote for agents; they hold for files such as {path}.\n{rules_text([section])}"


_CAUSE_OF_DEEPER = "memory:"  # see `nested_memory`

# text of the files cannot forge these tags, see `our_tags`
_RULES = compile_late(
    r'<rules file="(?P<file>[^\n]*?)"(?: imported-by="(?P<by>[^\n]*?)")?>\n(?P<text>.*?)\n</rules>', re.DOTALL
)


@dataclass(frozen=True, slots=True)
class ToldRules:
    """A memory file in a reminder."""

    path: str
    """Printable."""
    imported_by: str
    chars: int


def rules_told(messages: Iterable[Message]) -> Sequence[ToldRules]:
    """Return the memory files in the reminders of a conversation, in order."""
    return [
        ToldRules(found["file"], found["by"] or "", len(found["text"]))
        for message in messages
        if isinstance(message, SystemReminder) and _is_about_rules(message.cause)
        for found in _RULES.finditer(message.text)
    ]


def _is_about_rules(cause: str) -> bool:
    return cause == PROJECT_CONTEXT or cause.startswith(_CAUSE_OF_DEEPER)
