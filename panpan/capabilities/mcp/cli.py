"""MCP servers on the command line, whose line in the help is that of plug-ins.

`panpan mcp`:
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import anyio
import click

from panpan.capabilities.mcp.approvals import Approvals
from panpan.capabilities.mcp.catalogue import Catalogue
from panpan.capabilities.mcp.entries import (
    AnyVariable,
    GivenServers,
    KnownServers,
    Origin,
    ServerEntry,
    environment_of,
    how_to_get_library,
    read_entries,
    read_entry,
)
from panpan.capabilities.mcp.issuers import Issuers
from panpan.capabilities.mcp.logins import Logins, folder_below
from panpan.capabilities.mcp.logs import LogReader, log_file
from panpan.capabilities.mcp.settings import PROJECT_FILE, McpServerSettings
from panpan.cli_kit.commands import CommandGroup, CommandOfSessions, chosen_folder, program_of, settings_of_folder
from panpan.cli_kit.options import RUN_OPTIONS, overrides_of
from panpan.cli_kit.stdin import StdinReader
from panpan.config.locations import Locations
from panpan.config.settings_writer import save_table
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import user_home
from panpan.system.text.terminal_text import clean_line, printable
from panpan.system.web.network import WebNetwork
from panpan.version import __version__

if TYPE_CHECKING:
    from panpan.capabilities.mcp.callback import Paste
    from panpan.config.sources import Loaded

_CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose servers count.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_SCOPE = click.option(
    "-s", "--scope", type=click.Choice(["user", "project"]), default="user", show_default=True,
    help="user: your settings, for all projects. project: .mcp.json, for all who work on it.",
)  # fmt: skip

_MAX_LINE_BYTES = 100_000
_POLL_S = 0.3
"""Seconds between two looks at logs that are followed."""
_FORCE = click.option("-f", "--force", "is_forced", is_flag=True, help="Replace a server of the same name.")


@click.group("mcp", cls=CommandGroup)
def mcp() -> None:
    """Add, list, show, approve and remove MCP servers, log in at them, and be one.

    They are in [mcp.NAME] of your settings, in .mcp.json of the project, in agents, and in plug-ins.
    """


@mcp.command("list")
@_CWD
@_JSON
@click.pass_context
def list_servers(ctx: click.Context, cwd: Path | None, as_json: bool) -> int:
    """List the servers, and which of them may run; start none."""
    known, _, locations = _known(ctx, cwd)
    approvals = _approvals(locations)
    entries = [entry for _, entry in sorted(known.entries.items())]
    if as_json:
        rows = [
            {"name": one.name, "status": _status(one, approvals), "transport": one.transport, "target": one.title,
             "source": one.origin, "place": one.place}
            for one in entries
        ]  # fmt: skip
        click.echo(json.dumps({"servers": rows, "problems": [*known.problems, *known.asides]}, indent=2))
        return 0
    width = max((len(one.name) for one in entries), default=0)
    for one in entries:
        click.echo(printable(f"{one.name:<{width}}  {_status(one, approvals)}: {one.title} ({one.place})"))
    if not entries:
        click.echo("there are no MCP servers; panpan mcp add NAME COMMAND adds one", err=True)
    _tell(known)
    return 0


@mcp.command("get")
@click.argument("name")
@_CWD
@click.pass_context
def get(ctx: click.Context, name: str, cwd: Path | None) -> int:
    """Show what a server runs, what it may do, and which tools it is known to have."""
    known, loaded, locations = _known(ctx, cwd)
    entry = _require(known, name)
    click.echo(clean_line(f"{entry.name}: {_status(entry, _approvals(locations))}, from {entry.place}"))
    for line in entry.described():
        click.echo(printable(f"  {line}"))
    _tell_login(entry, _logins(loaded, locations))
    catalogue = Catalogue(locations.home / "mcp" / "known", project=locations.project_root)
    if not catalogue.recall(entry) or catalogue.server(entry.name) is None:
        click.echo("  its tools are not known yet: a session starts it and asks")
    for tool in catalogue.tools.values():
        first = tool.description.partition("\n")[0]
        click.echo(printable(f"  {tool.full_name}  {first[:100]}"))
    _tell(known)
    return 0


@mcp.command("logs")
@click.argument("name", required=False)
@click.option("-n", "--lines", type=click.IntRange(0, 100_000), default=50, show_default=True, help="Lines to show.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is added, until Ctrl+C.")
@_CWD
@click.pass_context
def logs(ctx: click.Context, name: str | None, lines: int, follow: bool, cwd: Path | None) -> int:
    """Show what a server has printed beside the protocol, and how it started and ended; of all without NAME."""
    known, _, locations = _known(ctx, cwd)
    entries = [entry for _, entry in sorted(known.entries.items())] if name is None else [_require(known, name)]
    folder, root = locations.home / "mcp" / "logs", locations.project_root
    readers = {entry.name: LogReader(log_file(folder, entry, root)) for entry in entries}
    width = max(map(len, readers), default=0) if name is None else 0

    def new_lines() -> list[str]:
        found = [(line, of) for of, reader in readers.items() for line in reader.new_lines()]
        found.sort(key=lambda one: one[0].partition(" ")[0])  # they begin with the time
        return [printable(f"{of:<{width}}  {line}" if width else line) for line, of in found]

    if not (found := new_lines()):
        click.echo("there is no log yet; a session begins it when it starts a server", err=True)
    for line in found[-lines:] if lines else ():
        click.echo(line)
    while follow:
        time.sleep(_POLL_S)
        for line in new_lines():
            click.echo(line)
    return 0


@mcp.command("add", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-t", "--transport", type=click.Choice(["stdio", "http", "sse"]), help="Way to the server.")
@click.option("-e", "--env", "env", multiple=True, metavar="NAME=VALUE", help="Variable of its program.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME: VALUE", help="Header of its requests.")
@_SCOPE
@_FORCE
@click.argument("name")
@click.argument("target", metavar="COMMAND|URL")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.pass_context
def add(
    ctx: click.Context,
    transport: str | None,
    env: Sequence[str],
    headers: Sequence[str],
    scope: str,
    is_forced: bool,
    name: str,
    target: str,
    args: Sequence[str],
) -> int:
    """Add a server: a program with its arguments, or an address. Options stand before NAME.

    A value ${VARIABLE} is filled in when the server is used, so that no secret is in the file.
    """
    if target == "--" and args:
        target, *args = args
    if target.startswith("-"):
        raise ConfigError(
            f"{clean_line(target)} is no program; options stand before the name: panpan mcp add {target} …"
        )
    is_address = target.startswith(("https://", "http://"))
    written: dict[str, Any] = (
        {"url": target} if is_address else {"command": target, **({"args": list(args)} if args else {})}
    )
    if is_address and args:
        raise ConfigError("an address takes no further words; options stand before the name")
    if transport is not None:
        written["type"] = transport
    if env:
        written["env"] = _pairs(env, "=", "--env")
    if headers:
        written["headers"] = _pairs(headers, ":", "--header")
    return _add(ctx, name, written, scope, is_forced=is_forced)


@mcp.command("add-json")
@_SCOPE
@_FORCE
@click.argument("name")
@click.argument("text", metavar="JSON")
@click.pass_context
def add_json(ctx: click.Context, scope: str, is_forced: bool, name: str, text: str) -> int:
    """Add a server as in .mcp.json, such as '{"command": "uvx", "args": ["mcp-server-git"]}'."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the entry is not JSON: {error}") from error
    return _add(ctx, name, written, scope, is_forced=is_forced)


@mcp.command("import")
@click.argument("source", type=click.Choice(["claude", "codex", "opencode", "vscode"]))
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "takes_all", is_flag=True, help="Take all of them.")
@_SCOPE
@_FORCE
@click.pass_context
def import_servers(
    ctx: click.Context, source: str, names: Sequence[str], takes_all: bool, scope: str, is_forced: bool
) -> int:
    """Take the servers NAME from the files of another agent; without names, show which there are."""
    from panpan.capabilities.mcp.importing import servers_of

    _, loaded, locations = settings_of_folder(ctx, None)
    found = servers_of(source, user_home(), locations.project_root)
    if missing := sorted(set(names) - found.keys()):
        raise ConfigError(
            clean_line(f"{source} has no server {', '.join(missing)}; it has: {', '.join(found) or 'none'}")
        )
    failed = 0
    for name in found if takes_all or not names else names:
        try:
            entry = _new_entry(locations, name, found[name], scope, source)
            if takes_all or names:
                if not is_forced:
                    _require_new(loaded, locations, name, scope)
                _write(locations, entry, found[name], scope)
        except ConfigError as error:
            failed += 1
            _note("warning", str(error))
            continue
        click.echo(printable(f"{name}: {entry.title}"))
    if not (takes_all or names):
        click.echo(f"none is taken yet: panpan mcp import {source} NAME, or --all", err=True)
    return int(bool(failed))


@mcp.command("remove")
@_SCOPE
@click.argument("name")
@click.pass_context
def remove(ctx: click.Context, scope: str, name: str) -> int:
    """Remove a server from your settings, or from the project."""
    _, loaded, locations = settings_of_folder(ctx, None)
    if scope == "user":
        if name not in loaded.settings.named(McpServerSettings):
            raise ConfigError(f"there is no [mcp.{clean_line(name)}] in your settings; see panpan mcp list")
        url = loaded.settings.named(McpServerSettings)[name].url
        place: Path = save_table(locations, "mcp", name, None)
    else:
        place, written = _project_file(locations)
        if (entry := written["mcpServers"].pop(name, None)) is None:
            raise ConfigError(f"there is no server {clean_line(name)} in {place}")
        url = entry.get("url") if isinstance(entry, dict) else None
        _write_project_file(place, written)
        _approvals(locations).remove(name)
    click.echo(clean_line(f"{name} is removed from {place}"))
    if url and _logins(loaded, locations).get(url) is not None:
        click.echo(clean_line(f"panpan: note: your login at {url} stays; panpan mcp logout {url} ends it"), err=True)
    return 0


@mcp.command("approve")
@click.argument("name")
@_CWD
@click.pass_context
def approve(ctx: click.Context, name: str, cwd: Path | None) -> int:
    """Let a server of the project run, exactly as it is written now."""
    known, loaded, locations = _known(ctx, cwd)
    entry = _require(known, name)
    if not entry.needs_approval:
        raise ConfigError(f"the server {entry.name} is your own, from {entry.place}, and needs no approval")
    for line in entry.described():
        click.echo(printable(f"  {line}"))
    _tell_login(entry, _logins(loaded, locations))
    _approvals(locations).add(entry)
    click.echo(f"{entry.name} may run in this project, exactly so")
    return 0


@mcp.command("login")
@click.argument("name")
@click.option("--no-browser", is_flag=True, help="Open no browser here; paste the address at which yours ends.")
@_CWD
@click.pass_context
def login(ctx: click.Context, name: str, no_browser: bool, cwd: Path | None) -> int:
    """Log in at a server, in your browser.

    On a machine without one, --no-browser shows an address that you open anywhere else.
    """
    known, loaded, locations = _known(ctx, cwd)
    entry = _require(known, name)
    if _approvals(locations).waits_for(entry):
        raise ConfigError(f"the server {entry.name} waits for your yes: panpan mcp approve {entry.name}")
    if command := how_to_get_library():
        raise ConfigError(f"MCP servers need a library; install it with: {command}")
    from panpan.capabilities.mcp.authorization import LoginPage, log_in, never_pasted
    from panpan.system.processes.user_browser import show_in_browser

    async def show(page: LoginPage) -> None:
        click.echo(page.lines)
        if no_browser:
            click.echo("Afterwards, paste here the address at which the browser ends:")
        elif show_in_browser(page.address):
            click.echo("Waiting for the browser; Ctrl+C leaves.")
        else:
            click.echo("No browser was opened. Open it yourself on this machine; for another one, use --no-browser.")

    paste = _pasting() if no_browser else never_pasted
    done = anyio.run(log_in, entry, _logins(loaded, locations), show, paste)
    click.echo(f"{entry.name}: {done.about}")
    return 0


def _pasting() -> "Paste":
    """Return what reads the pasted address from standard input."""
    stdin = StdinReader(sys.stdin)

    async def paste(is_wrong: bool) -> str:
        if is_wrong:
            click.echo("That is not the address of this login. Paste what the browser shows at its end:")
        line = await stdin.line(max_bytes=_MAX_LINE_BYTES)
        if line is None:
            click.echo("Nothing more can be pasted; a browser on this machine can still go on.", err=True)
        return (line or b"").decode(errors="replace")

    return paste


@mcp.command("logout")
@click.argument("name", metavar="NAME|URL")
@_CWD
@click.pass_context
def logout(ctx: click.Context, name: str, cwd: Path | None) -> int:
    """Forget the login at a server, and tell its issuer that it is void."""
    known, loaded, locations = _known(ctx, cwd)
    url = name if name.startswith(("https://", "http://")) else _require(known, name).settings.url or ""
    logins = _logins(loaded, locations)
    login = logins.get(url)
    if login is None and not logins.has_file(url):
        raise ConfigError(f"there is no login at {clean_line(name)}")
    is_told = anyio.run(logins.end, url)
    note = "" if is_told or login is None else "; its issuer was not told, so end it there, too, if others may have it"
    click.echo(clean_line(f"the login at {name} is forgotten{note}"))
    return 0


@mcp.command("serve", cls=CommandOfSessions)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@click.option("--http", "has_http", is_flag=True, help="Speak streamable HTTP instead of standard input and output.")
@click.option("--host", metavar="NAME", help="With --http: where to listen; 127.0.0.1 without it.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Port; without it, a free one.")
@click.option("--no-token", "needs_no_token", is_flag=True, help="Let every program on this machine in.")
@click.pass_context
def serve(
    ctx: click.Context, folders: Sequence[Path], has_http: bool, host: str | None, port: int, needs_no_token: bool
) -> int:
    """Be an MCP server: let clients give panpan tasks in the FOLDERs and below; without one, in this folder.

    Options for the sessions stand before `mcp`, such as --permission-mode, --model and --max-budget-usd.
    """
    from panpan.cli_kit.serving import HttpPlace, ServedPlace
    from panpan.config.run_settings import MCP_TOKEN_VARIABLE

    if command := how_to_get_library():
        raise ConfigError(f"the library that speaks the protocol is not installed; install it: {command}")
    options = ctx.meta.get(RUN_OPTIONS)
    if options and options["mcp_config"]:
        raise click.UsageError("--mcp-config does not go with mcp serve; add the server to your settings")
    if not has_http and (host or port or needs_no_token):
        raise click.UsageError("--host, --port and --no-token go with --http")
    if not has_http and sys.stdin.isatty():
        click.echo("panpan: an MCP client starts this and speaks to it on standard input; Ctrl+C ends it", err=True)
    token = os.environ.pop(MCP_TOKEN_VARIABLE, "")  # commands of sessions have no use for it
    overrides = overrides_of(options) if options else {}
    here = chosen_folder(ctx, None)
    place = ServedPlace([here / folder for folder in folders] or [here], dict(os.environ), overrides)
    http = None
    if has_http:
        address, has_token = host or "127.0.0.1", not needs_no_token
        http = HttpPlace(address, port, token=token, variable=MCP_TOKEN_VARIABLE, has_token=has_token)
    program_of(ctx).serve(place, http, lambda line: click.echo(f"panpan: {printable(line)}", err=True))
    return 0


def _require_new(loaded: "Loaded", locations: Locations, name: str, scope: str) -> None:
    """Refuse a name that a server has already, since the new one might have other rights."""
    own = loaded.settings.named(McpServerSettings)
    if name in (own if scope == "user" else _project_file(locations)[1]["mcpServers"]):
        raise ConfigError(f"there is a server {clean_line(name)} already; --force replaces it")


def _add(ctx: click.Context, name: str, written: Any, scope: str, *, is_forced: bool) -> int:
    _, loaded, locations = settings_of_folder(ctx, None)
    if not is_forced:
        _require_new(loaded, locations, name, scope)
    entry = _new_entry(locations, name, written, scope, "the entry")
    place = _write(locations, entry, written, scope)
    click.echo(clean_line(f"{name} is in {place}"))
    for line in entry.described():
        click.echo(printable(f"  {line}"))
    if command := how_to_get_library():
        _note("note", f"no server can be used before its library is there; install it: {command}")
    if entry.transport == "stdio" and not entry.is_boxed and which(entry.settings.command or "") is None:
        hint = "; for an address, begin it with https://" if "." in entry.title and "/" in entry.title else ""
        _note("note", f"there is no program {entry.settings.command} on this machine{hint}")
    if scope == "project":
        click.echo(f"It runs once you trust the project and approve it: panpan trust add; panpan mcp approve {name}")
    return 0


def _new_entry(locations: Locations, name: str, written: Any, scope: str, place: str) -> ServerEntry:
    """Return a server that is to be written, and tell what of it has no effect."""
    origin: Origin = "user" if scope == "user" else "project"
    return read_entry(
        name, written, AnyVariable(), place, origin, project=locations.project_root, tell=partial(_note, "note")
    )


def _write(locations: Locations, entry: ServerEntry, written: Any, scope: str) -> Path:
    """Write a server where it belongs, and return the file."""
    if scope == "user":
        return save_table(locations, "mcp", entry.name, entry.written)
    place, file = _project_file(locations)
    file["mcpServers"][entry.name] = written
    _write_project_file(place, file)
    return place


def _pairs(given: Sequence[str], sign: str, option: str) -> Mapping[str, str]:
    pairs = {}
    for one in given:
        name, found, value = one.partition(sign)
        if not found or not name.strip():
            raise ConfigError(f"{option} {clean_line(one)[:100]}: write NAME{sign}VALUE")
        pairs[name.strip()] = value.strip() if sign == ":" else value
    return pairs


def _project_file(locations: Locations) -> tuple[Path, dict[str, Any]]:
    """Return the file of the project with its servers, and what is in it."""
    path = locations.project_root / PROJECT_FILE
    try:
        written = json.loads(path.read_bytes()) if path.exists() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if isinstance(written, dict) and written and "mcpServers" not in written:
        written = {"mcpServers": written}  # a file without the object around its servers
    if not isinstance(written, dict) or not isinstance(written.setdefault("mcpServers", {}), dict):
        raise ConfigError(f'{path} has no object "mcpServers"')
    return path, written


def _write_project_file(path: Path, written: Mapping[str, Any]) -> None:
    try:
        write_atomic(path, f"{json.dumps(written, indent=2, ensure_ascii=False)}\n".encode(), mode=None)
    except ToolError as error:
        raise ConfigError(str(error)) from error


def _known(ctx: click.Context, cwd: Path | None) -> "tuple[KnownServers, Loaded, Locations]":
    workspace, loaded, locations = settings_of_folder(ctx, cwd)
    given = GivenServers(tuple((ctx.meta.get(RUN_OPTIONS) or {}).get("mcp_config") or ()))
    own = loaded.settings.named(McpServerSettings)
    known = read_entries(own, loaded.places, given, environment_of(os.environ, loaded.settings), workspace)
    if PROJECT_FILE in loaded.trust.files.content and not loaded.trust.is_trusted:
        waits = f"the servers in {PROJECT_FILE} wait until you trust the project: panpan trust add"
        known = replace(known, problems=(*known.problems, waits))
    return known, loaded, locations


def _logins(loaded: "Loaded", locations: Locations) -> Logins:
    web = loaded.settings.web
    network = WebNetwork().as_set_up(web.private_hosts, web.proxy_url)
    return Logins(folder_below(locations.home), Issuers(network, web.user_agent or f"panpan/{__version__}"))


def _tell_login(entry: ServerEntry, logins: Logins) -> None:
    if (url := entry.settings.url) and (login := logins.get(url)):
        click.echo(f"  with your login: {login.about}")


def _approvals(locations: Locations) -> Approvals:
    return Approvals(locations.home / "mcp", locations.project_root)


def _require(known: KnownServers, name: str) -> ServerEntry:
    if (entry := known.entries.get(name)) is None:
        problem = next((one for one in known.problems if f"the server {name} " in one), "")
        waits = next((f" ({one})" for one in known.problems if one.startswith("the servers in ")), "")
        names = ", ".join(sorted(known.entries)) or "none"
        raise ConfigError(clean_line(problem or f"there is no MCP server {name}; there are: {names}{waits}"))
    return entry


def _status(entry: ServerEntry, approvals: Approvals) -> str:
    if not entry.settings.enabled:
        return "off"
    return "waits for your yes" if approvals.waits_for(entry) else "may run"


def _tell(known: KnownServers) -> None:
    for line in known.problems:
        _note("warning", line)
    for line in known.asides:
        _note("note", line)


def _note(kind: str, line: str) -> None:
    click.echo(f"panpan: {kind}: {clean_line(line)}", err=True)
