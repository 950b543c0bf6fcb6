"""Hiding from pages that a program drives the browser; only where the user's own settings say so.

The rule: it changes what pages see and nothing of what they may do. Whoever turns it on answers for what sites allow.
"""

from typing import TYPE_CHECKING

from panpan.errors import ToolError
from panpan.system.own_packages import how_to_install

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

SCRIPTS = "playwright-stealth>=2,<3"
"""The package that has them, as in the extra `browser` of pyproject.toml."""


def without_driver(user_agent: str) -> str:
    """Return what Chromium says of itself where it has a window."""
    return user_agent.replace("HeadlessChrome", "Chrome")


async def hide_driver(context: "BrowserContext") -> None:
    """Let the pages of `context` see the browser as one that a person uses.

    Raises:
        ToolError: The scripts for it are not installed.
    """
    try:
        from playwright_stealth import Stealth
    except ImportError:
        raise ToolError(
            f"web.stealth is on and playwright-stealth is not installed; run: {how_to_install(SCRIPTS)}"
        ) from None
    # the platform stays the true one: one that the user agent contradicts is what gives a browser away
    await Stealth(navigator_platform=False, navigator_platform_override=None).apply_stealth_async(context)
