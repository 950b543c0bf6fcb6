"""`panpan serve`: sessions over HTTP, for programs and for the browser."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from panpan.cli_kit.commands import CommandOfSessions, chosen_folder
from panpan.cli_kit.options import server_options
from panpan.config.run_settings import SERVER_TOKEN_VARIABLE
from panpan.errors import ConfigError
from panpan.system.text.terminal_text import printable

if TYPE_CHECKING:
    from panpan.faces.server.serving import ServerPlace

PACKAGES = ("starlette>=1.10,<2", "uvicorn>=0.54,<1", "sse-starlette>=3.7,<4", "websockets>=17,<18")
"""Libraries of the server, as in pyproject.toml."""


@click.command("serve", cls=CommandOfSessions)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@click.option("--host", metavar="NAME", help="Address to listen at; 127.0.0.1 if none.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Port; a free one if none.")
@click.option("--socket", "path", type=click.Path(path_type=Path), metavar="PATH", help="Unix socket; needs no token.")
@click.option("--read-only", is_flag=True, help="Let clients look, and change nothing.")
@click.option("--open", "opens_browser", is_flag=True, help="Open the page in the browser.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Certificate, for TLS.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Key of the certificate.")
@click.option("--behind-proxy", metavar="URL", help="Address of a proxy that speaks TLS to clients.")
@click.option("--access-log", is_flag=True, help="Print a line for each request.")
@click.pass_context
def command(
    ctx: click.Context,
    folders: Sequence[Path],
    host: str | None,
    port: int,
    path: Path | None,
    read_only: bool,
    opens_browser: bool,
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: str | None,
    access_log: bool,
) -> int:
    """Offer sessions over HTTP, in the FOLDERs and below; without one, in this folder.

    It prints its address, with a new token behind the #. PANPAN_SERVER_TOKEN holds a token of yours. Options for the
    sessions stand before `serve`, such as --permission-mode, --model and --max-budget-usd.
    """
    _require_packages()
    from panpan.faces.server.serving import ServerPlace

    if path is not None and (host or port or tls_cert or tls_key or behind_proxy or opens_browser):
        raise click.UsageError("--socket goes without --host, --port, --open, --tls-cert, --tls-key and --behind-proxy")
    if (tls_cert is None) != (tls_key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if path is not None:
        os.environ.pop(SERVER_TOKEN_VARIABLE, None)  # commands of sessions have no use for it
        return _run(ctx, folders, ServerPlace(None, path, read_only), access_log=access_log)
    where = _http_place(host or "127.0.0.1", port, read_only, (tls_cert, tls_key), behind_proxy)
    return _run(ctx, folders, where, access_log=access_log, opens_browser=opens_browser)


def _require_packages() -> None:
    modules = [package.partition(">")[0].replace("-", "_") for package in PACKAGES]
    if any(find_spec(module) is None for module in modules):
        from panpan.system.environment import how_to_install

        raise ConfigError(f"the server needs libraries; install them: {how_to_install(*PACKAGES)}")


def _http_place(
    host: str, port: int, only_reads: bool, tls: tuple[str | None, str | None], proxy: str | None
) -> "ServerPlace":
    from urllib.parse import urlsplit

    from panpan.cli_kit.serving import HttpPlace
    from panpan.faces.server.serving import ServerPlace

    token = os.environ.pop(SERVER_TOKEN_VARIABLE, "")  # commands of sessions have no use for it
    names: Sequence[str] = ()
    origins: Sequence[str] = ()
    if proxy is not None:
        parts = urlsplit(proxy)
        if parts.scheme != "https" or not parts.netloc or parts.path not in ("", "/") or "@" in parts.netloc:
            raise click.UsageError("--behind-proxy takes the address of the proxy, such as https://panpan.example.org")
        name = parts.netloc.lower().removesuffix(":443")  # as browsers send it
        names, origins = [name], [f"https://{name}"]
    place = HttpPlace(host, port, token=token, variable=SERVER_TOKEN_VARIABLE, names=names)
    certificate = None if tls[0] is None or tls[1] is None else (tls[0], tls[1])
    if not place.is_loopback and certificate is None and proxy is None:
        raise ConfigError(
            f"{printable(host)} can be reached over the network, where a token can be read; "
            "use --tls-cert and --tls-key, or --behind-proxy"
        )
    return ServerPlace(place, None, only_reads, certificate, origins)


def _run(
    ctx: click.Context,
    folders: Sequence[Path],
    where: "ServerPlace",
    *,
    access_log: bool = False,
    opens_browser: bool = False,
) -> int:
    import anyio

    from panpan.cli.start import begin_collection
    from panpan.cli_kit.serving import ServedPlace
    from panpan.faces.server.serving import serve as serve_at
    from panpan.system.processes.own_process import hide_process

    options = server_options(ctx)
    here = chosen_folder(ctx, None)
    place = ServedPlace([here / folder for folder in folders] or [here], options["env"] or {}, {})
    hide_process(os.environ)
    begin_collection()

    def ready(address: str, token: str) -> None:
        is_shown = where.http is not None and not where.http.is_own_token  # the user has their own already
        _say(f"serving at {address}#{token}" if is_shown else f"serving at {address}")
        if sys.stderr.isatty():
            _say("Ctrl+C ends it; conversations are kept")
        if opens_browser:
            from panpan.system.processes.user_browser import show_in_browser

            if not show_in_browser(f"{address}#{token}"):
                _say("there is no browser with a window here; open the address in one yourself")

    note: Callable[[str], None] = _say if access_log else lambda _: None
    anyio.run(lambda: serve_at(place, options, where, say=_say, note=note, ready=ready))
    return 0


def _say(line: str) -> None:
    click.echo(f"panpan: {printable(line)}", err=True)
