"""The files that a server has been shown, as they are now, and what it says is wrong with them.

The rule: a file that is open is what panpan says it is, so each look begins with what is on disk. Problems count for
the text that they were found in, and only for files that are open: a server may tell of as many others as it likes.
"""

import math
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio import move_on_after, to_thread

from panpan.capabilities.language_servers.server_process import ServerKind, ServerTimeouts
from panpan.capabilities.language_servers.wire import Diagnostic, diagnostics, path_of
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import decode_file
from panpan.types.dataclass import dataclass

Stamp: TypeAlias = tuple[int, int, int, int]
"""Inode, size, modification time and status change time of a file.

A file that replaces another, as by `cp -p` or from an archive, may have an older modification time.
"""


def stamp_of(place: "Path | os.DirEntry[str]") -> Stamp | None:
    """Return the stamp of what is there now; None where there is nothing. Synchronous."""
    try:
        status = place.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


MAX_OPEN = 50
MAX_BYTES = 2_000_000
"""Most bytes of a file that a server is shown."""
_PAUSE_S = 0.15
"""Seconds for which a server may still replace the first problems that it reports for a text."""
_EMPTY_PAUSE_S = 0.5
"""The same if the first report is empty, as from servers that check the syntax first. TypeScript's server reports types
0.3 s later."""


class TextChangedError(ToolError):
    """A file was given another text while problems of one were waited for; ask again."""


@dataclass(slots=True)
class Document:
    """One open file."""

    path: Path
    uri: str
    text: str
    version: int = 1
    stamp: Stamp | None = None
    """Stamp of the file when the text was read; None if the text did not come from the file."""
    problems: Sequence[Diagnostic] | None = None
    """Problems that the server reported last; None if it has not reported any list yet."""
    is_told: bool = False
    """True if they are about the present text."""
    quiet_since: float = 0.0
    """Time at which the server was shown the present text, or last reported on it."""
    problems_event: anyio.Event = field(default_factory=anyio.Event)


def source_text(path: Path) -> str:
    """Return the text of a file as a server can be shown it. Synchronous.

    Raises:
        ToolError: It is missing, too large, or no text.
    """
    decoded = decode_file(read_regular_file(path, max_bytes=MAX_BYTES))
    if decoded is None:
        raise ToolError(f"{path} is binary, and language servers read text only")
    return decoded.readable


class Documents:
    """Open documents of one server.

    `saves`: True if the server wants to be told that a file was saved.
    """

    def __init__(
        self, notify: Callable[[str, Any], None], languages: Mapping[str, str], *, saves: bool, timeouts: ServerTimeouts
    ) -> None:
        self._notify = notify
        self._languages = languages
        self._saves = saves
        self._timeouts = timeouts
        self._open: OrderedDict[Path, Document] = OrderedDict()

    @staticmethod
    def require(document: Document, version: int) -> None:
        """Make sure that a document has the text that it had. Raise TextChangedError if it has another one."""
        if document.version != version:
            raise TextChangedError(f"{document.path} was given another text while it was looked at")

    def show(self, path: Path, text: str, stamp: Stamp | None = None) -> Document:
        """Let the server know that the file at a canonical path has this text now."""
        document = self._open.get(path)
        if document is None:
            document = self._opened(path, text)
        elif document.text != text:
            document.version += 1
            document.text, document.is_told, document.quiet_since = text, False, anyio.current_time()
            self._notify(
                "textDocument/didChange",
                {
                    "textDocument": {"uri": document.uri, "version": document.version},
                    "contentChanges": [{"text": text}],
                },
            )
            if self._saves:
                self._notify("textDocument/didSave", {"textDocument": {"uri": document.uri}})
        document.stamp = stamp
        self._open.move_to_end(path)
        return document

    def _opened(self, path: Path, text: str) -> Document:
        if len(self._open) >= MAX_OPEN:
            self.close(next(iter(self._open)))
        document = self._open[path] = Document(path, path.as_uri(), text, quiet_since=anyio.current_time())
        language = self._languages.get(path.suffix.lower(), "plaintext")
        item = {"uri": document.uri, "languageId": language, "version": document.version, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": item})
        return document

    def close(self, path: Path) -> None:
        """Let the server read a file from disk again, if it is open."""
        document = self._open.pop(path, None)
        if document is not None:
            self._notify("textDocument/didClose", {"textDocument": {"uri": document.uri}})

    async def show_file(self, path: Path) -> Document:
        """Let the server know what is in a file on disk. Raise ToolError if it cannot be read."""
        text, stamp = await to_thread.run_sync(_read, path, abandon_on_cancel=True)
        return self.show(path, text, stamp)

    async def refresh(self, *, but: Path) -> None:
        """Let the server know of the open files that have changed on disk."""
        others = [document for path, document in self._open.items() if path != but]
        stale = await to_thread.run_sync(_stale, others, abandon_on_cancel=True)
        for path in stale:
            try:
                await self.show_file(path)
            except ToolError:  # it was deleted, or is no longer text
                self.close(path)

    def take_published(self, params: Any) -> None:
        """Take the problems that the server reports for a file."""
        if not isinstance(params, Mapping) or not isinstance(params.get("uri"), str):
            return
        path = path_of(params["uri"])
        document = self._open.get(path) if path is not None else None
        if document is None or params.get("version") not in (None, document.version):
            return
        document.problems, document.is_told = diagnostics(params.get("diagnostics")), True
        document.quiet_since = anyio.current_time()
        document.problems_event.set()
        document.problems_event = anyio.Event()

    def answered(self, document: Document, problems: Sequence[Diagnostic]) -> None:
        """Take the server's answer for the present text; no more reports follow."""
        document.problems, document.is_told, document.quiet_since = problems, True, -math.inf

    def all_known(self, path: Path, text: str) -> Sequence[Diagnostic] | None:
        """Return all problems of a text; None where it is not what is open, or more of them may come."""
        document = self._open.get(path)
        if document is None or document.text != text or self._left_s(document) > 0:
            return None
        return document.problems

    async def wait_for_problems(self, document: Document) -> None:
        """Wait until the server tells problems of the present text; the caller bounds how long. More may follow.

        Where it is silent although it has told of an earlier text, that still holds: some tell only what is new.
        """
        while not document.is_told and (left_s := self._left_s(document)) > 0:
            with anyio.move_on_after(left_s):
                await document.problems_event.wait()
        with anyio.move_on_after(_PAUSE_S if document.problems else _EMPTY_PAUSE_S):
            await document.problems_event.wait()

    async def settle(self, document: Document) -> None:
        """Wait until the server tells no more of the present text; the caller bounds how long it waits.

        Raises:
            TextChangedError: It has another text now.
        """
        version = document.version
        while (left_s := self._left_s(document)) > 0:
            with anyio.move_on_after(left_s):
                await document.problems_event.wait()
            self.require(document, version)

    def _left_s(self, document: Document) -> float:
        """Return after how many more seconds of silence the server will tell nothing else of the present text."""
        if document.problems is None:
            return math.inf
        silence_s = self._timeouts.silence_s if document.is_told else self._timeouts.first_s
        return document.quiet_since + silence_s - anyio.current_time()


def _read(path: Path) -> tuple[str, Stamp | None]:
    stamp = stamp_of(path)  # first, so that a change during the read makes the stamp old
    return source_text(path), stamp


def _stale(documents: Sequence[Document]) -> list[Path]:
    return [one.path for one in documents if one.stamp is None or stamp_of(one.path) != one.stamp]


# Watches names, times and sizes of the files in the server's languages, and reads none. A folder with too many entries
# to check before each question is not watched; the server learns that at its start, and has to watch by itself.

MAX_ENTRIES = 20_000
MAX_IN_FOLDER = 2_000
"""A folder with more entries is taken for data, and is skipped with all below it."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "venv", "site-packages"})
_CREATED, _CHANGED, _DELETED = 1, 2, 3
"""The protocol's numbers (`FileChangeType`)."""


class WatchedFiles:
    """The files of one server.

    `max_entries`: files that are looked at; at least 1.
    """

    def __init__(self, root: Path, kind: ServerKind, *, max_entries: int = MAX_ENTRIES) -> None:
        self._root = root
        self._max_entries = max_entries
        self._endings = tuple(kind.languages)
        self._names = frozenset(kind.roots)
        self._known: dict[str, Stamp] | None = None
        self.is_too_large = False
        """True if a look has found more files than can be watched, so that the folder is not watched."""

    def changes(self) -> Sequence[dict[str, Any]]:
        """Return the files that changed since the last call, in the protocol's form; none at the first. Synchronous."""
        if self.is_too_large:
            return ()
        before, now = self._known, self._look()
        self._known = now
        if before is None or now is None:
            return ()
        kinds = {path: _CREATED if path not in before else _CHANGED for path in now if before.get(path) != now[path]}
        kinds |= dict.fromkeys(before.keys() - now.keys(), _DELETED)
        return [{"uri": Path(path).as_uri(), "type": kind} for path, kind in kinds.items()]

    def _look(self) -> dict[str, Stamp] | None:
        found: dict[str, Stamp] = {}
        for count, entry in enumerate(_entries(str(self._root))):
            if count >= self._max_entries:
                self.is_too_large = True
                return None
            is_source = entry.name.lower().endswith(self._endings) or entry.name in self._names
            if is_source and (stamp := stamp_of(entry)) is not None:
                found[entry.path] = stamp
        return found


def _entries(folder: str) -> Iterator["os.DirEntry[str]"]:
    """Yield all files below a folder, without hidden folders and those that hold data, or what others wrote."""
    folders = [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as scan:
                entries = list(islice(scan, MAX_IN_FOLDER + 1))
            for entry in entries if len(entries) <= MAX_IN_FOLDER else ():
                if not entry.is_dir(follow_symlinks=False):
                    yield entry
                elif not entry.name.startswith(".") and entry.name not in _PASSED_OVER:
                    folders.append(entry.path)
        except OSError:
            continue


_LOOK_S = 5.0
"""Seconds that a question waits for a running look at another text."""
_MOST_LOOKS = 3


class SyncedDocuments:
    """The files of one server.

    `provider`: what it says of being asked for problems (`diagnosticProvider`); None: it tells them by itself.
    """

    def __init__(
        self,
        name: str,
        documents: Documents,
        watched: WatchedFiles,
        *,
        notify: Callable[[str, Any], None],
        request: Callable[[str, Any], Awaitable[Any]],
        provider: Any,
        answer_s: float,
    ) -> None:
        self._name = name
        self._documents = documents
        self._watched = watched
        self._notify = notify
        self._request = request
        self._provider = provider
        self.is_asked = provider not in (None, False)
        """True if the server is asked for problems and then returns all; else it reports them by itself, in pieces."""
        self._answer_s = answer_s
        self._showing = anyio.Lock()
        """Held while the server is told the contents of files."""
        self._looking = anyio.Lock()
        """Held while a text is shown that need not be the one on disk, until its problems are known."""

    def take_published(self, params: Any) -> None:
        """Take the problems that the server reports by itself; ignored if it is asked for them."""
        if not self.is_asked:
            self._documents.take_published(params)

    async def opened(self, path: Path) -> Document:
        """Let it know of all that changed on disk, and open a file.

        Raises:
            ToolError: The file cannot be read, or the server is gone.
        """
        with move_on_after(_LOOK_S):
            async with self._looking:
                pass
        async with self._showing:
            await self._catch_up(path)
            return await self._documents.show_file(path)

    async def _catch_up(self, path: Path) -> None:
        """Let it know of all that changed on disk, but for one file that is shown next."""
        changes = await to_thread.run_sync(self._watched.changes, abandon_on_cancel=True)
        if changes:
            self._notify("workspace/didChangeWatchedFiles", {"changes": changes})
        await self._documents.refresh(but=path)

    async def problems_before(self, path: Path, text: str) -> Sequence[Diagnostic] | None:
        """Return all that is wrong with a text that is about to be changed; None where only time would tell.

        Raises:
            ToolError: As below.
        """
        if self.is_asked:
            return await self.all_problems(path, text)
        return self._documents.all_known(path, text)

    async def problems(self, path: Path, text: str) -> Sequence[Diagnostic]:
        """Return the problems of a text that is, was or will be at a path; the caller bounds how long it waits.

        More may follow where the server tells them by itself, see `all_problems`.

        Raises:
            ToolError: It does not answer; `TextChangedError` where the file was given another text meanwhile.
        """
        async with self._looking:
            return (await self._looked_at(path, text)).problems or ()

    async def all_problems(self, path: Path, text: str) -> Sequence[Diagnostic]:
        """Return all that is wrong with a text, which nobody replaces meanwhile without need.

        Raises:
            ToolError: As above.
        """
        for _ in range(_MOST_LOOKS):
            with suppress(TextChangedError):  # a caller that timed out asked about the file on disk
                async with self._looking:
                    document = await self._looked_at(path, text)
                    await self._documents.settle(document)
                    return document.problems or ()
        raise TextChangedError(f"{path} was given other texts while it was looked at")

    async def _looked_at(self, path: Path, text: str) -> Document:
        """Show a text, and return it once its first problems are known; `_looking` is held."""
        async with self._showing:
            await self._catch_up(path)
            document = self._documents.show(path, text)
        version = document.version
        if self.is_asked:  # even for a text that it was asked about before: another file may have changed since
            found = await self._pulled(document)
            self._documents.require(document, version)
            self._documents.answered(document, found)
        else:
            await self._documents.wait_for_problems(document)
            self._documents.require(document, version)
        return document

    async def problems_now(self, path: Path) -> Sequence[Diagnostic]:
        """Return the problems of a file on disk, together with the present state of all others.

        Raises:
            ToolError: The file cannot be read, or it does not answer.
        """
        document = await self.opened(path)
        if self.is_asked:
            return await self._pulled(document)
        with move_on_after(self._answer_s):
            await self._documents.wait_for_problems(document)
            await self._documents.settle(document)
        if document.problems is None:
            raise ToolError(f"{self._name} said nothing of {path.name} within {self._answer_s:g} s")
        return document.problems

    async def _pulled(self, document: Document) -> Sequence[Diagnostic]:
        params: dict[str, Any] = {"textDocument": {"uri": document.uri}}
        if isinstance(self._provider, Mapping) and isinstance(self._provider.get("identifier"), str):
            params["identifier"] = self._provider["identifier"]
        report = await self._request("textDocument/diagnostic", params)
        return diagnostics(report.get("items") if isinstance(report, Mapping) else None)
