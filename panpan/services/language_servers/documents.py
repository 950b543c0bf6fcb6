"""The files that a server has been shown, as they are now, and what it says is wrong with them.

The rule: a file that is open is what panpan says it is, so each look begins with what is on disk. Problems count for
the text that they were found in, and only for files that are open: a server may tell of as many others as it likes.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread

from panpan.errors import ToolError
from panpan.services.language_servers.wire import Diagnostic, diagnostics, path_of
from panpan.system.read_file import read_regular_file
from panpan.tools.files.file_text import decode_file
from panpan.types.dataclass import dataclass

MAX_OPEN = 50
MAX_BYTES = 2_000_000
"""Of a file that a server is shown."""
_PAUSE_S = 0.15
"""How long what a server tells first of a text may still be replaced, before it is worth telling."""


class TextChangedError(ToolError):
    """A file was given another text while problems of one were waited for; ask again."""


@dataclass(slots=True)
class Document:
    """One open file."""

    path: Path
    uri: str
    text: str
    version: int = 1
    stamp: tuple[int, int] | None = None
    """Time and size on disk when the text was read; None: it was not read from there."""
    problems: Sequence[Diagnostic] | None = None
    """Those of the present text; None where the server has not told them."""
    is_settled: bool = False
    """Whether no more of them will come."""
    told: anyio.Event = field(default_factory=anyio.Event)
    """Set when it tells more."""


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
    """What is open in one server.

    Args:
        notify: Tells the server something.
        languages: Names of languages by the ends of files' names.
        saves: Whether the server wants to be told that a file was saved.
        silence_s: Seconds after which it will tell no more of a text.
    """

    def __init__(
        self, notify: Callable[[str, Any], None], languages: Mapping[str, str], *, saves: bool, silence_s: float
    ) -> None:
        self._notify = notify
        self._languages = languages
        self._saves = saves
        self._silence_s = silence_s
        self._open: OrderedDict[Path, Document] = OrderedDict()

    @staticmethod
    def require(document: Document, version: int) -> None:
        """Make sure that a document has the text that it had.

        Raises:
            TextChangedError: It has another one.
        """
        if document.version != version:
            raise TextChangedError(f"{document.path} was given another text while it was looked at")

    def show(self, path: Path, text: str, stamp: tuple[int, int] | None = None) -> Document:
        """Let the server know that the file at a canonical path has this text now."""
        document = self._open.get(path)
        if document is None:
            document = self._opened(path, text)
        elif document.text != text:
            document.version += 1
            document.text, document.problems, document.is_settled = text, None, False
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
        document = self._open[path] = Document(path, path.as_uri(), text)
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
        """Let the server know what is in a file on disk.

        Raises:
            ToolError: It cannot be read.
        """
        text, stamp = await to_thread.run_sync(_read, path, abandon_on_cancel=True)
        return self.show(path, text, stamp)

    async def refresh(self, *, but: Path) -> None:
        """Let the server know of the open files that have changed on disk.

        Args:
            but: A file that is left as it is.
        """
        others = [document for path, document in self._open.items() if path != but]
        stale = await to_thread.run_sync(_stale, others, abandon_on_cancel=True)
        for path in stale:
            try:
                await self.show_file(path)
            except ToolError:  # it is gone, or no text any more
                self.close(path)

    def published(self, params: Any) -> None:
        """Take what the server tells of a file."""
        if not isinstance(params, Mapping) or not isinstance(params.get("uri"), str):
            return
        path = path_of(params["uri"])
        document = self._open.get(path) if path is not None else None
        if document is None or params.get("version") not in (None, document.version):
            return
        document.problems = diagnostics(params.get("diagnostics"))
        document.told.set()
        document.told = anyio.Event()

    async def told(self, document: Document) -> Sequence[Diagnostic]:
        """Return the problems of the present text as soon as the server tells any; the caller bounds how long it waits.

        More may follow.
        """
        while document.problems is None:
            await document.told.wait()
        with anyio.move_on_after(_PAUSE_S):
            await document.told.wait()
        return document.problems or ()

    async def settle(self, document: Document) -> None:
        """Wait until the server tells no more of the present text; the caller bounds how long it waits.

        Raises:
            TextChangedError: It has another text now.
        """
        version = document.version
        while not document.is_settled:
            with anyio.move_on_after(self._silence_s) as waiting:
                await document.told.wait()
            self.require(document, version)
            document.is_settled = waiting.cancelled_caught


def _read(path: Path) -> tuple[str, tuple[int, int] | None]:
    stamp = _stamp(path)
    return source_text(path), stamp


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _stale(documents: Sequence[Document]) -> list[Path]:
    return [one.path for one in documents if one.stamp is None or _stamp(one.path) != one.stamp]
