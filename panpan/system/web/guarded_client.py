"""The one client for plain HTTP: whatever panpan itself asks for on the web, it asks for here.

The rule: every address, those of redirects too, goes through the URL guard, and what the guard returned is dialled.
Time, heads, redirects and what a body grows to are bounded; how long a body may be is for whoever reads it to say.

It stands on h11, as the proxies do, and not on a larger client: those read the address once more in their own way.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import anyio

from panpan.errors import ToolError
from panpan.system.web.network import Connector, WebNetwork
from panpan.system.web.url_guard import NO_PRIVATE_HOSTS, Origin, PlainUrl, plain_url, read_url

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse

Allow: TypeAlias = Callable[[PlainUrl], Awaitable[None] | None]
"""Raises ToolError where an address, or one that a redirect names, is not to be asked for."""

MAX_CONNECTIONS = 16
"""Of one client at the same time; others wait."""
ACCEPTED = "gzip, deflate"
"""Codings that are asked for where the caller asks for nothing else."""
_OURS = frozenset({"host", "connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer"})
"""Headers that nobody but this client writes."""


class GuardedClient:
    """Asks for addresses of the public web. Leave it when nothing more is to be asked for.

    Args:
        network: How the outside is reached. The private hosts that it opens may be asked for; no redirect of others
            leads there.
        user_agent: What servers are told of who asks.
        own: Addresses that the user's own settings name, which may lead into his network; each opens its scheme, host
            and port, and nothing else, and to no redirect of others.

    Raises:
        ToolError: One of `own` cannot be read.
    """

    def __init__(self, network: WebNetwork, *, user_agent: str, own: Collection[str] = ()) -> None:
        self._user_agent = user_agent
        self._own: frozenset[Origin] = frozenset(read_url(url).origin for url in own)
        self._network = network
        self._connector = Connector(network)
        self._free = anyio.Semaphore(MAX_CONNECTIONS)
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Ask for nothing more; what is being read may be read to its end."""
        self._is_closed = True

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        timeout_s: float = 30.0,
        max_redirects: int = 10,
        allow: Allow | None = None,
    ) -> AsyncGenerator["GuardedResponse", None]:
        """Ask for `url`, follow redirects, and give the answer, whose body is still to come.

        Args:
            method: GET, HEAD, POST …
            url: As somebody wrote it.
            headers: What to send beside what every request has. With an `accept-encoding` of its own, such as
                `identity`, or a `range`, the body is decoded only where that was asked for.
            content: What to send.
            timeout_s: Seconds for a server to be reached and to answer with a head, and between two pieces of a body.
            max_redirects: Redirects that are followed.
            allow: Asked before each address, redirects included.

        Raises:
            ToolError: It may not be asked for, or there is no answer; says why. Reading the body raises it, too.
        """
        from panpan.system.web.exchange import (
            GuardedResponse,
            WebHeaders,
            WebRequest,
            exchanged,  # with all that it needs 10 ms, and not every session asks
            location_of,
            redirected,
        )

        if self._is_closed:
            raise ToolError("the session is about to end; nothing more is asked for")
        plain, is_own = self._plain(url, may_be_own=True)
        request = WebRequest(method.upper(), plain, self._completed(headers or {}), content, is_own)
        history: list[str] = []
        async with self._free:
            while True:
                await _ask(allow, request.plain)
                async with exchanged(request, self._connector, timeout_s) as (side, head):
                    status, answered = head.status_code, WebHeaders(head.headers)
                    location = location_of(request, status, answered)
                    if location is None:
                        yield GuardedResponse(request, status, answered, tuple(history), side, timeout_s)
                        return
                history.append(request.plain.url)
                if len(history) > max_redirects:
                    raise ToolError(f"{request.plain.host} redirects on after {max_redirects} redirects")
                target, is_own = self._plain(location, may_be_own=request.is_own)
                request = redirected(request, status, target, is_own=is_own)
                if request.method == "GET" and request.plain.url in history:  # no cookie is kept: it would go on so
                    raise ToolError(f"{request.plain.host} redirects in a circle")

    def plain(self, url: str) -> PlainUrl:
        """Return the parts of an address that may be asked for, as far as that can be told without a name server.

        Raises:
            ToolError: It may not be asked for, or is none.
        """
        return self._plain(url, may_be_own=True)[0]

    def _plain(self, url: str, *, may_be_own: bool) -> tuple[PlainUrl, bool]:
        """Return an address, and True if it may lead into the user's network; no stranger's redirect does."""
        plain = read_url(url)
        if may_be_own and plain.origin in self._own:
            return plain, True
        private = self._network.private if may_be_own else NO_PRIVATE_HOSTS
        return plain_url(url, private), private.opens(plain.host, plain.address)

    def _completed(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        given = {name.lower(): value for name, value in headers.items()}
        if ours := _OURS & given.keys():
            raise ValueError(f"not for callers to write: {', '.join(sorted(ours))}")
        coding = "identity" if "range" in given else ACCEPTED
        return {"user-agent": self._user_agent, "accept": "*/*", "accept-encoding": coding} | given


async def _ask(allow: Allow | None, plain: PlainUrl) -> None:
    answer = None if allow is None else allow(plain)
    if answer is not None:
        await answer
