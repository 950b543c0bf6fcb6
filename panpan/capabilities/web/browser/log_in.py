"""A log-in by the user himself, in a window of the browser, of which only what it left is kept.

The rule: panpan sees no password, types nothing and clicks nothing. The window goes through the same proxy as every
page.
"""

import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio

from panpan.capabilities.web.browser.page_rendering import page_context
from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium
from panpan.capabilities.web.browser.saved_logins import site_of
from panpan.errors import ToolError
from panpan.system.web.filter_proxy import FilterProxy
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import plain_url

_OPEN_S = 60.0


def require_display(env: Mapping[str, str]) -> None:
    """Raise where no window can be opened.

    Args:
        env: The environment; says whether there is a display.

    Raises:
        ToolError: There is none.
    """
    if sys.platform != "darwin" and not env.get("DISPLAY") and not env.get("WAYLAND_DISPLAY"):
        raise ToolError(
            "there is no display to open a window on; log in on a machine with one, or over `ssh -X`, where panpan has "
            "the same home"
        )


async def log_in(
    url: str, network: WebNetwork, launch: Launch, until: Callable[[], Awaitable[None]]
) -> tuple[str, Mapping[str, Any]]:
    """Show a page until the user has logged in, and return its site and what that left.

    Args:
        url: The page.
        network: How the outside is reached.
        launch: How the browser is started.
        until: Returns when the user says that he is done.

    Raises:
        ToolError: The page cannot be shown, or the window was closed before.
    """
    plain = plain_url(url, network.private)
    chromium = await RunningChromium.start(launch)
    try:
        return site_of(plain.host), await _left_by(chromium, network.for_page(plain), plain.url, until)
    finally:
        await chromium.aclose()


async def _left_by(
    chromium: RunningChromium, network: WebNetwork, url: str, until: Callable[[], Awaitable[None]]
) -> Mapping[str, Any]:
    from playwright.async_api import Error

    failure: ToolError | None = None
    storage: Mapping[str, Any] = {}
    async with FilterProxy(network) as proxy:
        try:
            async with page_context(chromium, proxy) as context:
                page = await context.new_page()
                await page.goto(url, wait_until="commit", timeout=_OPEN_S * 1000)
                await _until_done(page.wait_for_event("close", timeout=0), until)
                storage = dict(await context.storage_state())
        except Error as exc:
            why = proxy.refused[-1] if proxy.refused else str(exc).strip().partition("\n")[0][:300]
            failure = ToolError(f"the log-in was not kept: {why}")
        except ToolError as exc:
            failure = exc
    if failure is not None:
        raise failure
    return storage


async def _until_done(closed: Awaitable[object], until: Callable[[], Awaitable[None]]) -> None:
    """Wait for the user's word.

    Raises:
        ToolError: He closed the page.
    """
    from playwright.async_api import Error

    is_done = False

    async def wait_for_word() -> None:
        nonlocal is_done
        await until()
        is_done = True
        task_group.cancel_scope.cancel()

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(wait_for_word)
        with suppress(Error):  # the whole browser may be gone
            await closed
        task_group.cancel_scope.cancel()
    if not is_done:
        raise ToolError("the page was closed, and the log-in is not kept; leave it open until you have said that it is")
