"""Where the page itself may go: not to a host that nobody was asked about, whoever sends it there.

The rule: each address of the page is judged before it is asked for, those of redirects, scripts, forms and refreshes
too. What the page loads is not judged here; that passes the proxy.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from panpan.capabilities.web.rendering import Allow
from panpan.errors import ToolError
from panpan.system.web.url_guard import PrivateHosts, plain_url

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

_MAX_REFUSED = 3


class MainFrame:
    """Keeps a page where it may be. Made by `watched`.

    Args:
        session: Speaks to the page.
        frame: The page's own, as Chromium calls it.
        allow: Raises ToolError where an address is not to be asked for.
        private: Hosts that the page may lead to although they are not public.
    """

    def __init__(self, session: "CDPSession", frame: str, allow: Allow, private: PrivateHosts) -> None:
        self._session = session
        self._frame = frame
        self._allow = allow
        self._private = private
        self._refused: dict[str, None] = {}

    @classmethod
    async def watched(cls, session: "CDPSession", allow: Allow, private: PrivateHosts) -> "MainFrame":
        """Return the frame of a page, which from now on goes nowhere unasked."""
        tree = await session.send("Page.getFrameTree")
        main = cls(session, tree["frameTree"]["frame"]["id"], allow, private)
        session.on("Fetch.requestPaused", main._judge)
        await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document", "requestStage": "Request"}]})
        return main

    @property
    def refused(self) -> Sequence[str]:
        """Why it did not go where it was sent; each once, the first of them."""
        return tuple(self._refused)

    async def _judge(self, paused: dict[str, Any]) -> None:
        from playwright.async_api import Error

        answer, more = "Fetch.continueRequest", {}
        if paused.get("frameId") == self._frame:
            try:
                self._allow(plain_url(paused["request"]["url"], self._private))
            except ToolError as refusal:
                answer, more = "Fetch.failRequest", {"errorReason": "Aborted"}  # the page stays as it is
                if len(self._refused) < _MAX_REFUSED:
                    self._refused[str(refusal)] = None
        with suppress(Error):  # the page is gone
            await self._session.send(answer, {"requestId": paused["requestId"], **more})
