"""What a server is shown of files, as they are, were or will be, and what it finds wrong with them.

The rule: before each question the server is told of all that changed on disk. A look at a text that is not on disk goes
one after the other, so that problems belong to the text that they were asked about; a question for what is on disk lets
it have its way, but not for ever.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from anyio import move_on_after, to_thread

from panpan.capabilities.language_servers.documents import Document, Documents, TextChangedError
from panpan.capabilities.language_servers.watched_files import WatchedFiles
from panpan.capabilities.language_servers.wire import Diagnostic, diagnostics
from panpan.errors import ToolError

_LOOK_S = 5.0
"""How long a question lets a look at another text have its way."""
_MOST_LOOKS = 3


class ShownTexts:
    """The files of one server.

    Args:
        name: What the server is called.
        documents: What is open in it.
        watched: What changes on disk.
        notify: Tells the server something.
        request: Asks it something.
        provider: What it says of being asked for problems (`diagnosticProvider`); None: it tells them by itself.
        answer_s: Seconds that an answer may take.
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
