"""What a server is shown of files, as they are, were or will be, and what it finds wrong with them.

The rule: before each question the server is told of all that changed on disk. A look at a text that is not on disk goes
one after the other, so that problems belong to the text that they were asked about; a question for what is on disk lets
it have its way, but not for ever.
"""

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
from anyio import move_on_after, to_thread

from panpan.capabilities.language_servers.documents import Document, Documents, Stamp, TextChangedError, stamp_of
from panpan.capabilities.language_servers.server_process import ServerKind
from panpan.capabilities.language_servers.wire import Diagnostic, diagnostics
from panpan.errors import ToolError

# Nothing is read. Only names, times and sizes are looked at, of the files of the server's languages; where a folder
# holds more than can be looked at before each question, it is not watched, and the server, which is told so at its
# start, has to see for itself.

MAX_ENTRIES = 20_000
MAX_IN_FOLDER = 2_000
"""What holds more is data, and not looked at, with all below it."""
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "target", "build", "dist", "venv", "site-packages"})
_CREATED, _CHANGED, _DELETED = 1, 2, 3
"""As the protocol numbers them (`FileChangeType`)."""


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
        """Whether the folder is not watched, as a look has found."""

    def changes(self) -> Sequence[dict[str, Any]]:
        """Return what changed since the last call, as the protocol tells it; nothing at the first. Synchronous."""
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
"""How long a question lets a look at another text have its way."""
_MOST_LOOKS = 3


class ShownTexts:
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
        """Whether it tells problems when it is asked, and all of them then; else by itself, in pieces."""
        self._answer_s = answer_s
        self._showing = anyio.Lock()
        """Held while it is told what is in files."""
        self._looking = anyio.Lock()
        """Held while a text is shown that need not be the one on disk, until its problems are known."""

    def published(self, params: Any) -> None:
        """Take what the server tells of a file by itself; one that is asked has told all."""
        if not self.is_asked:
            self._documents.published(params)

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
        """Return what is wrong with a text that is, was or will be at a path; the caller bounds how long it waits.

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
            with suppress(TextChangedError):  # somebody who could wait no longer asked about the file on disk
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
        if self.is_asked:  # also of a text that it was asked about before: another file may have changed since
            found = await self._pulled(document)
            self._documents.require(document, version)
            self._documents.answered(document, found)
        else:
            await self._documents.told(document)
            self._documents.require(document, version)
        return document

    async def problems_now(self, path: Path) -> Sequence[Diagnostic]:
        """Return what is wrong with a file on disk, beside what is in all others now.

        Raises:
            ToolError: The file cannot be read, or it does not answer.
        """
        document = await self.opened(path)
        if self.is_asked:
            return await self._pulled(document)
        with move_on_after(self._answer_s):
            await self._documents.told(document)
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
