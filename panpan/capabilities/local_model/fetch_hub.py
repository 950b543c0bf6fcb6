"""Fetches weights from the model hub: one file over HTTP, going on where an earlier try stopped.

The rule: what an answer has is added only if it says of itself that it is the file, by its whole length and by where it
begins; a login page of a network in between says something else. Whether the bytes are right, the hash tells.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from panpan.capabilities.local_model.fetching import PartialFile, SourceUnavailableError
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable
from panpan.system.web.ranges import TooMuchError, sent_range, size_of, written

if TYPE_CHECKING:
    import httpx2

_CONNECT_S = 5.0
_IDLE_S = 30.0
_PAUSE_S = 1.0
_MAX_TRIES = 100


class HubSource:
    """The model hub.

    Args:
        url: The file.
        idle_s: Seconds of silence after which a connection counts as cut.
        pause_s: Seconds before a connection that was cut is made again.
    """

    def __init__(self, url: str, *, idle_s: float = _IDLE_S, pause_s: float = _PAUSE_S) -> None:
        self._url = url
        self._idle_s = idle_s
        self._pause_s = pause_s
        self.scratch_bytes = 0

    @property
    def title(self) -> str:
        return urlsplit(self._url).hostname or self._url

    async def fetch(self, partial: PartialFile) -> AsyncGenerator[int, None]:
        """See `Source.fetch`. A connection that is cut is made again as long as each one brings something."""
        import httpx2

        async with self._client() as client:
            for _ in range(_MAX_TRIES):
                before = partial.length
                try:
                    async with aclosing(self._try(client, partial)) as lengths:
                        async for length in lengths:
                            yield length
                except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
                    if partial.length == before:
                        raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc
                if partial.is_whole:
                    return
                if partial.length == before:
                    break
                await anyio.sleep(self._pause_s)
        raise SourceUnavailableError(f"{self.title} breaks off again and again")

    def _client(self) -> "httpx2.AsyncClient":
        """Return a client that goes through the user's proxy and trusts the user's certificates."""
        import httpx2

        try:
            return httpx2.AsyncClient(
                follow_redirects=True,  # the hub sends to a network of caches
                timeout=httpx2.Timeout(self._idle_s, connect=_CONNECT_S),
                # Compressed, the length and the ranges would be those of something else.
                headers={"accept-encoding": "identity", "user-agent": "panpan"},
            )
        except (ValueError, ImportError, OSError) as exc:  # a proxy or a certificate file that cannot be used
            raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc

    async def _try(self, client: "httpx2.AsyncClient", partial: PartialFile) -> AsyncGenerator[int, None]:
        """Ask once, and add what comes."""
        start = partial.length
        async with aclosing(await self._answer(client, start)) as answer:
            to_skip = start - self._start_of(answer, start, partial.size_bytes)
            body = answer.aiter_raw()
            try:
                growing = written(body, partial.append, size=start, most=partial.size_bytes, skip=to_skip)
                async with aclosing(growing) as lengths:
                    async for length in lengths:
                        yield length
            except TooMuchError:
                raise SourceUnavailableError(f"{self.title} sent more than it had announced") from None

    async def _answer(self, client: "httpx2.AsyncClient", start: int) -> "httpx2.Response":
        """Ask for what begins at `start`, and return the answer, its body still to come; the caller closes it.

        Raises:
            SourceUnavailableError: The address is none, or a redirect leads to one that is none.
        """
        # No If-Range: the revision in the address never changes, and the hash has the last word.
        headers = {"range": f"bytes={start}-"} if start else {}
        try:
            return await client.send(client.build_request("GET", self._url, headers=headers), stream=True)
        except (ValueError, OverflowError, OSError, ExceptionGroup) as exc:  # what the client does not wrap
            raise SourceUnavailableError(f"{self.title} cannot be reached: {_reason(exc)}") from exc

    def _start_of(self, answer: "httpx2.Response", start: int, size_bytes: int) -> int:
        """Return where in the file the answer begins.

        Raises:
            SourceUnavailableError: It is not the file.
        """
        if answer.status_code not in (200, 206):
            raise SourceUnavailableError(f"{self.title} refuses: HTTP status {answer.status_code}")
        if answer.headers.get("content-encoding", "identity") != "identity":
            raise SourceUnavailableError(f"{self.title} sends the file in a form that was not asked for")
        if answer.status_code == 206:
            if sent_range(answer.headers) == (start, size_bytes):
                return start
        elif size_of(answer.headers) == size_bytes:
            return 0  # a server, or a proxy, that does not know ranges; what is here already is passed over
        raise SourceUnavailableError(f"{self.title} answers with something that is not the file")


def _reason(exc: BaseException) -> str:
    """Return what went wrong, on one line; time-outs say nothing of themselves."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return printable(Redactor().redact(str(exc))) or (
        "no answer in time" if "Timeout" in type(exc).__name__ else type(exc).__name__
    )
