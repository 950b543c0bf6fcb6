"""Descriptions of plug-ins for people: what one brings, what would run, and what an update changes.

The rule: a person who says yes has seen all of it. Nothing that runs is cut or left out, and no character is hidden.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from functools import cached_property

from panpan.cli_kit.plugin_parts import PartReport, RunningPart
from panpan.config.places import Places
from panpan.config.plugins.manifest import TITLES, FolderContent
from panpan.config.plugins.store import LoadedPlugin
from panpan.errors import ToolError
from panpan.system.text.terminal_text import escape_invisible

_MAX_TEXT = 1_000_000
"""Most characters of a text whose lines are compared."""


def shown(text: str) -> str:
    """Return a text on one line, with every character that cannot be seen as a number."""
    return escape_invisible(text).replace("\n", "\\n").replace("\t", "\\t")


class Description:
    """Content of a plug-in, as the features read it that use its parts.

    Args:
        loaded: The plug-in.
        read: Lets the features read its parts.
    """

    def __init__(self, loaded: LoadedPlugin, read: Callable[[Places], Sequence[PartReport]]) -> None:
        self._plugin = loaded.plugin
        self._root = str(loaded.place.root)
        self._reports = read(Places(only=(loaded,)))

    @cached_property
    def running(self) -> Sequence[RunningPart]:
        """Everything that runs, or lets something run."""
        own = [RunningPart(f"program for commands: {part.path}", "") for part in self._plugin.of_kind("programs")]
        return [*(part for report in self._reports for part in report.running), *own]

    @property
    def problems(self) -> Sequence[str]:
        """Parts that do not count, each with its file."""
        return [self._short(problem) for report in self._reports for problem in report.problems]

    @property
    def notes(self) -> Sequence[str]:
        """Keys and files that have no effect."""
        return [*self._plugin.problems, *(self._short(note) for report in self._reports for note in report.notes)]

    def _short(self, text: str) -> str:
        return text.replace(f"{self._root}/", "")

    def lines(self) -> Iterator[str]:
        """Yield all of it, line by line."""
        plugin = self._plugin
        version = f" {plugin.version}" if plugin.version else ""
        yield shown(f"{plugin.name}{version}: {plugin.description or 'no description'}")
        yield f"  a plug-in in the format of {TITLES[plugin.format]}"
        for report in self._reports:
            if report.names:
                yield f"  {report.title}: {shown(', '.join(report.names))}"
        yield "  what runs, or may run, when it is on:" if self.running else "  nothing of it runs by itself"
        for part in self.running:
            place = f" ({self._short(part.place)})" if part.place else ""
            yield f"    {shown(f'{part.text}{place}')}"
        yield from (f"  wrong: {shown(problem)}" for problem in self.problems)
        yield from (f"  note: {shown(note)}" for note in self.notes)


def differences(old: FolderContent, new: FolderContent) -> Iterator[str]:
    """Yield what an update changes, file by file, with the lines of texts."""
    for name in sorted({*old.names, *new.names}):
        before, after = (_read(name, content) if name in content.names else None for content in (old, new))
        if before == after:
            continue
        kind = "new" if before is None else "gone" if after is None else "changed"
        yield f"{kind}: {shown(name)}"
        yield from (f"  {line}" for line in _lines(before or b"", after or b""))


def _read(path: str, content: FolderContent) -> bytes:
    try:
        return content.read(path)
    except ToolError as error:
        return f"({error})".encode()


def _lines(before: bytes, after: bytes) -> Iterator[str]:
    try:
        texts: Sequence[str] = [data.decode() for data in (before, after)]
    except UnicodeDecodeError:
        texts = ()
    if not texts or max(map(len, texts)) > _MAX_TEXT:
        yield f"({len(before):,} and {len(after):,} bytes, too many or no text)"
        return
    found = unified_diff(texts[0].split("\n"), texts[1].split("\n"), n=2, lineterm="")
    for number, line in enumerate(found):
        if number > 1:  # the first two name the files
            yield escape_invisible(line)


def newly_running(old: Description, new: Description) -> Iterator[RunningPart]:
    """Yield what runs in an update and did not before, wherever it stands."""
    before = {part.text for part in old.running}
    yield from (part for part in new.running if part.text not in before)
