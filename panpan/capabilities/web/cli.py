"""`panpan web`: Log in to web sites for the browser, and out again.

The user logs in, in a window of the browser; what that leaves is kept for pages of that site, and nothing else is.
"""

import os
import sys

import anyio
import anyio.to_thread
import click

from panpan.capabilities.web.browser.log_in import log_in, require_display
from panpan.capabilities.web.browser.opening import launch_of
from panpan.capabilities.web.browser.saved_logins import SavedLogins, site_of
from panpan.cli_kit.chosen_folder import chosen_folder
from panpan.cli_kit.command_group import CommandGroup
from panpan.config.locations import Locations
from panpan.config.settings import WebSettings
from panpan.config.sources import load_settings
from panpan.config.trust import trust_of
from panpan.errors import ConfigError, ToolError
from panpan.shell_analysis.safe_path import without_workspace
from panpan.system.files.paths import PathResolver
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import PrivateHosts, plain_url, read_url


@click.group("web", cls=CommandGroup)
def web() -> None:
    """Log in to web sites for the browser, and out again."""


@web.command("login")
@click.argument("url")
@click.pass_context
def login(ctx: click.Context, url: str) -> int:
    """Open URL in a window of the browser, and keep what your log-in there leaves.

    URL may be the name of a site alone, such as example.org.
    Its cookies and local storage are used when the browser shows pages of the same host or of hosts below it, and for
    no others. Only you can read them; `panpan web logout` forgets them.
    """
    folder = chosen_folder(ctx, None).resolve()
    locations = Locations.find(folder, os.environ)
    settings = load_settings(folder, os.environ, {}, locations, trust=trust_of(locations)).settings.web
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
    """List the sites that a log-in is kept for."""
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
    """Forget the log-in to SITE, such as example.org; the address of a page of it does, too."""
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
