"""The files that a server has been shown, as they are now, and what it says is wrong with them.

The rule: a file that is open is what panpan says it is, so each look begins with what is on disk. Problems count for
the text that they were found in, and only for files that are open: a server may tell of as many others as it likes.
"""

import math
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from anyio import to_thread

from panpan.capabilities.language_servers.server_process import Patience
from panpan.capabilities.language_servers.wire import Diagnostic, diagnostics, path_of
from panpan.errors import ToolError
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.file_text import decode_file
from panpan.types.dataclass import dataclass

Stamp: TypeAlias = tuple[int, int, int, int]
"""Which file it is, its size, and when it was changed, by what it says and by what the disk notes.

Of a file that was put in the place of another, as by `cp -p` or an unpacked archive, the second may be an old time.
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
"""Of a file that a server is shown."""
_PAUSE_S = 0.15
"""How long what a server tells first of a text may still be replaced, before it is worth telling."""
_EMPTY_PAUSE_S = 0.5
"""The same where that is nothing, as from servers that tell of the syntax first: with TypeScript's, types come 0.3 s
later."""


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
    """That of the file when the text was read; None: it was not read from there."""
    problems: Sequence[Diagnostic] | None = None
    """What the server has told last; None: nothing yet."""
    is_told: bool = False
    """Whether that is about the present text."""
    quiet_since: float = 0.0
    """When it was shown the present text, or told of it last."""
    told: anyio.Event = field(default_factory=anyio.Event)


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

    `saves`: True if the server wants to be told that a file was saved.
    """

    def __init__(
        self, notify: Callable[[str, Any], None], languages: Mapping[str, str], *, saves: bool, patience: Patience
    ) -> None:
        self._notify = notify
        self._languages = languages
        self._saves = saves
        self._patience = patience
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
        document.problems, document.is_told = diagnostics(params.get("diagnostics")), True
        document.quiet_since = anyio.current_time()
        document.told.set()
        document.told = anyio.Event()

    def answered(self, document: Document, problems: Sequence[Diagnostic]) -> None:
        """Take what the server has answered of the present text; it tells no more."""
        document.problems, document.is_told, document.quiet_since = problems, True, -math.inf

    def all_known(self, path: Path, text: str) -> Sequence[Diagnostic] | None:
        """Return all problems of a text; None where it is not what is open, or more of them may come."""
        document = self._open.get(path)
        if document is None or document.text != text or self._left_s(document) > 0:
            return None
        return document.problems

    async def told(self, document: Document) -> None:
        """Wait until the server tells problems of the present text; the caller bounds how long. More may follow.

        Where it is silent although it has told of an earlier text, that still holds: some tell only what is new.
        """
        while not document.is_told and (left_s := self._left_s(document)) > 0:
            with anyio.move_on_after(left_s):
                await document.told.wait()
        with anyio.move_on_after(_PAUSE_S if document.problems else _EMPTY_PAUSE_S):
            await document.told.wait()

    async def settle(self, document: Document) -> None:
        """Wait until the server tells no more of the present text; the caller bounds how long it waits.

        Raises:
            TextChangedError: It has another text now.
        """
        version = document.version
        while (left_s := self._left_s(document)) > 0:
            with anyio.move_on_after(left_s):
                await document.told.wait()
            self.require(document, version)

    def _left_s(self, document: Document) -> float:
        """Return after how many more seconds of silence the server will tell nothing else of the present text."""
        if document.problems is None:
            return math.inf
        silence_s = self._patience.silence_s if document.is_told else self._patience.first_s
        return document.quiet_since + silence_s - anyio.current_time()


def _read(path: Path) -> tuple[str, Stamp | None]:
    stamp = stamp_of(path)  # first, so that a change meanwhile makes it an old one
    return source_text(path), stamp


def _stale(documents: Sequence[Document]) -> list[Path]:
    return [one.path for one in documents if one.stamp is None or stamp_of(one.path) != one.stamp]
