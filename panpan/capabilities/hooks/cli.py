"""`panpan hooks`: Show your hooks, and try them without a model.

Only `test` runs anything: the hooks of one event, with what you give them.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

import anyio
import click

from panpan.capabilities.hooks.configuration import ConfiguredHooks, hooks_of_folder
from panpan.capabilities.hooks.contract import FIRED, NEVER_FIRED
from panpan.cli_kit.commands import CommandGroup, settings_of_folder
from panpan.errors import ConfigError
from panpan.system.environment import user_environment
from panpan.system.text.terminal_text import printable
from panpan.version import __version__

_CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose hooks count.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
_NAME_KEYS = (
    "tool_name",
    "source",
    "reason",
    "trigger",
    "notification_type",
    "agent_type",
    "command_name",
    "to_model",
    "load_reason",
)
"""Keys of an input that matchers are compared with."""


@click.group("hooks", cls=CommandGroup)
def hooks() -> None:
    """Show your hooks, and try them without a model."""


@hooks.command("list")
@_CWD
@_JSON
@click.pass_context
def list_hooks(ctx: click.Context, cwd: Path | None, as_json: bool) -> int:
    """List the hooks in the order in which they count, and what of them cannot be used."""
    found = _hooks_of(ctx, cwd)
    if as_json:
        rows = [
            {
                "event": one.event,
                "matcher": one.matcher,
                "command": one.title,
                "if": one.condition.text if one.condition else None,
                "timeout": one.timeout_s,
                "guard": one.is_guard,
                "place": one.place,
            }
            for one in found.handlers
        ]
        click.echo(json.dumps({"hooks": rows, "problems": list(found.problems)}, indent=2))
        return 0
    for one in found.handlers:
        click.echo(printable(one.line))
    if not found.handlers:
        click.echo("there are no hooks", err=True)
    _tell(found)
    return 0


@hooks.command("explain")
@click.argument("event")
@click.argument("name", required=False, default="")
@_CWD
@click.pass_context
def explain(ctx: click.Context, event: str, name: str, cwd: Path | None) -> int:
    """Say what an event is, and which hooks run at it for a tool of this NAME."""
    _require_event(event)
    found = _hooks_of(ctx, cwd)
    click.echo(f"{event}: {FIRED[event]}")
    at_event = [one for one in found.handlers if one.event == event]
    running = [one for one in at_event if not name or one.matches(name) or one.sees_edits_of(name)]
    for one in running:
        click.echo(printable(one.line))
        click.echo(f"  if it fails, {'the answer is no: it is a guard' if one.is_guard else 'the work goes on'}")
    if not running:
        click.echo(f"no hook runs at {event}{f' for {name}' if name else ''}")
    _tell(found)
    return 0


@hooks.command("test")
@click.argument("event")
@click.option(
    "--input", "file", type=click.Path(path_type=Path), required=True, metavar="FILE", help="JSON; - reads it."
)
@_CWD
@click.pass_context
def test(ctx: click.Context, event: str, file: Path, cwd: Path | None) -> int:
    """Run the hooks of an event, and print what each says; an `if` is not looked at.

    The exit code is 2 if one says no or a guard fails, and 1 if another one fails.
    """
    from panpan.capabilities.hooks.running import Server, run_all
    from panpan.system.web.network import WebNetwork

    _require_event(event)
    try:
        told = json.loads(sys.stdin.read() if file == Path("-") else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"the input is no JSON: {error}") from error
    if not isinstance(told, dict):
        raise ConfigError('the input is no JSON object; write one, such as {"tool_name": "Bash"}')
    _, loaded, locations = settings_of_folder(ctx, cwd)
    root, found = locations.project_root, hooks_of_folder(loaded.places, loaded.sources)
    web = loaded.settings.web
    network = WebNetwork().as_set_up(web.private_hosts, web.proxy_url)
    server = Server(network, web.user_agent or f"panpan/{__version__}", os.environ)
    name = next((str(told[key]) for key in _NAME_KEYS if key in told), "")
    running = [one for one in found.handlers if one.event == event and one.matches(name)]
    env = {**user_environment(), "CLAUDE_PROJECT_DIR": str(root)}
    runs = [(one, {"cwd": str(root), **told}) for one in running]
    said = anyio.run(lambda: run_all(runs, cwd=root, env=env, server=server))
    for one in said:
        click.echo(printable(one.handler.line))
        answer = {key: value for key, value in asdict(one.answer).items() if value not in ("", None, (), [])}
        click.echo(f"  {json.dumps(answer, ensure_ascii=False)}")
    if not said:
        click.echo(f"no hook runs at {event}{f' for {name}' if name else ''}", err=True)
    _tell(found)
    failed = [one.handler for one in said if one.answer.failure]
    is_refused = any(one.answer.verdict == "deny" for one in said) or any(one.is_guard for one in failed)
    return 2 if is_refused else int(bool(failed))


def _hooks_of(ctx: click.Context, cwd: Path | None) -> ConfiguredHooks:
    _, loaded, _ = settings_of_folder(ctx, cwd)
    return hooks_of_folder(loaded.places, loaded.sources)


def _require_event(event: str) -> None:
    if event in NEVER_FIRED:
        raise ConfigError(f"hooks of {event} never run in panpan; these run: {', '.join(FIRED)}")
    if event not in FIRED:
        raise ConfigError(f"there is no event {event}; there are {', '.join(FIRED)}")


def _tell(found: ConfiguredHooks) -> None:
    for problem in found.problems:
        click.echo(f"panpan: warning: {printable(problem)}", err=True)
