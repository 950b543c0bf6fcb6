"""The browser as a user's settings have it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.browser.chromium import find_chromium
from panpan.capabilities.web.browser.saved_logins import SavedLogins
from panpan.config.settings import WebSettings
from panpan.system.environment import child_environment
from panpan.system.web.network import WebNetwork

if TYPE_CHECKING:
    from panpan.capabilities.web.browser.running_chromium import Launch


def browser_of(
    settings: WebSettings,
    network: WebNetwork,
    env: Mapping[str, str],
    search_path: Callable[[], str],
    logins: Path,
    product: str,
) -> Browser:
    """Return the browser of a session; nothing is started or looked for yet.

    Args:
        settings: The user's.
        network: How the outside is reached.
        env: The environment, without keys.
        search_path: Returns where programs are, without folders of the project.
        logins: Folder of the log-ins that are kept.
        product: What servers are told of this program, beside what Chromium says.
    """
    return Browser(
        network,
        lambda: launch_of(settings, env, search_path()),
        max_pages=settings.pages,
        user_agent=settings.user_agent,
        product=product,
        storage_for=SavedLogins(logins).storage_for,
    )


def launch_of(settings: WebSettings, env: Mapping[str, str], search_path: str, *, has_window: bool = False) -> "Launch":
    """Return how Chromium is started.

    Args:
        settings: The user's.
        env: The environment, without keys.
        search_path: Where programs are, without folders of the project.
        has_window: Whether the user is to see it.

    Raises:
        ToolError: There is none; says what to do.
    """
    from panpan.capabilities.web.browser.running_chromium import Launch  # most sessions show no page

    program = find_chromium(settings.browser, search_path, env)
    return Launch(program, child_environment(env), hides_driver=settings.stealth, has_window=has_window)
