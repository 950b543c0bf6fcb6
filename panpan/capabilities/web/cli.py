"""`panpan web`: Work in the browser, or log in to sites that panpan reads.

The user logs in, in a window of the browser; what that leaves is kept for pages of that site, and nothing else is.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread
import click

from panpan.capabilities.web.browser.browser import SavedLogins, launch_of
from panpan.capabilities.web.browser.page_rendering import page_context
from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium
from panpan.capabilities.web.settings import WebSettings
from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.config.trust import trust_of
from panpan.errors import ConfigError, ToolError
from panpan.system.files.paths import PathResolver, without_workspace
from panpan.system.web.domain_lists import site_of
from panpan.system.web.filter_proxy import FilterProxy
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PrivateHosts, plain_url, read_url

# Panpan sees no password, types nothing and clicks nothing. The window uses the same proxy as every page.

_OPEN_S = 60.0


def require_display(env: Mapping[str, str]) -> None:
    """Raise where no window can be opened.

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
    """Show a page until `until` returns, and return its site and what the log-in left.

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
    """Wait until the user says that they have logged in; raise `ToolError` if they closed the page."""
    from playwright.async_api import Error

    is_done = False

    async def wait_for_word() -> None:
        nonlocal is_done
        await until()
        is_done = True
        task_group.cancel_scope.cancel()

    async with anyio.create_task_group() as task_group:
        task_group.start_soon(wait_for_word)
        with suppress(Error):  # the whole browser may have ended
            await closed
        task_group.cancel_scope.cancel()
    if not is_done:
        raise ToolError("the page was closed, and the log-in is not kept; leave it open until you have said that it is")


@click.group("web", cls=CommandGroup, invoke_without_command=True)
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Port; a free one if none.")
@click.option("--read-only", "read_only", is_flag=True, help="Let the page look, and change nothing.")
@click.option("--no-browser", is_flag=True, help="Print the address, and open no browser.")
@click.pass_context
def web(ctx: click.Context, port: int, read_only: bool, no_browser: bool) -> int:
    """Open panpan in the browser, for sessions in this folder and below; `panpan serve` has more options.

    The commands keep log-ins to web sites, for pages that panpan reads with a browser of its own.
    """
    if ctx.invoked_subcommand is not None:
        return 0
    root = ctx.find_root()
    serve = root.command.get_command(root, "serve") if isinstance(root.command, click.Group) else None
    if serve is None:
        raise ConfigError("panpan web is a command of panpan; run: panpan web")
    code = ctx.invoke(serve, port=port, read_only=read_only, opens_browser=not no_browser)
    return code if isinstance(code, int) else 0


@web.command("login")
@click.argument("url")
@click.pass_context
def login(ctx: click.Context, url: str) -> int:
    """Open URL in a browser window, and keep your log-in.

    URL may also be the name of a site, such as example.org. Its cookies and local storage are used only for pages of
    the same host or of hosts below it. Only you can read them; `panpan web logout` forgets them.
    """
    folder = chosen_folder(ctx, None).resolve()
    locations = Locations.find(folder, os.environ)
    settings = load_settings(folder, os.environ, {}, locations, trust=trust_of(locations)).settings[WebSettings]
    url = url if "://" in url else f"https://{url}"
    try:
        plain_url(url, PrivateHosts.parse(settings.private_hosts))
        if not settings.login_window:
            raise ToolError("log-ins in a window are switched off (web.login_window in the settings)")
        require_display(os.environ)
        if not sys.stdin.isatty():
            raise ToolError("`panpan web login` waits for Enter; run it in a terminal")
        site = anyio.run(_log_in, url, settings, locations)
    except ToolError as exc:
        raise ConfigError(str(exc)) from exc
    click.echo(f"the log-in to {site} is kept; `panpan web logout {site}` forgets it")
    return 0


@web.command("logins")
@click.pass_context
def logins(ctx: click.Context) -> int:
    """List the sites with a log-in."""
    sites = _kept(ctx).sites()
    for site in sites:
        click.echo(site)
    if not sites:
        click.echo("no log-in is kept", err=True)
    return 0


@web.command("logout")
@click.argument("site", required=False)
@click.option("--all", "all_sites", is_flag=True, help="Forget every log-in.")
@click.pass_context
def logout(ctx: click.Context, site: str | None, all_sites: bool) -> int:
    """Forget the log-in to SITE, such as example.org or the address of a page."""
    kept = _kept(ctx)
    if all_sites == (site is not None):
        raise ConfigError("name one site, or give --all")
    try:
        for name in kept.sites() if site is None else [site_of(_host(site))]:
            if not kept.forget(name):
                raise ConfigError(f"no log-in to {name} is kept; `panpan web logins` lists those that are")
            click.echo(f"the log-in to {name} is forgotten")
    except ToolError as exc:
        raise ConfigError(str(exc)) from exc
    return 0


def _host(site: str) -> str:
    return read_url(site).host if "://" in site else site.lower()


def _kept(ctx: click.Context) -> SavedLogins:
    return SavedLogins(Locations.find(chosen_folder(ctx, None), os.environ).logins_folder)


async def _log_in(url: str, settings: WebSettings, locations: Locations) -> str:
    search_path = without_workspace(os.environ.get("PATH", os.defpath), PathResolver(locations.project_root))
    launch = launch_of(settings, os.environ, search_path, has_window=True)
    network = WebNetwork().as_set_up(settings.private_hosts, settings.proxy_url)
    site, storage = await log_in(url, network, launch, _enter_pressed)
    SavedLogins(locations.logins_folder).keep(site, storage)
    return site


async def _enter_pressed() -> None:
    click.echo("log in in the window; then press Enter here, with the window still open")
    await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
