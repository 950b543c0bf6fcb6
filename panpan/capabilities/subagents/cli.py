"""`panpan agents`: List, show, create and check subagents."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from panpan.capabilities.subagents.definitions.files import (
    NOT_FILLED_IN,
    OWN_FOLDER,
    as_text,
    head_of,
    new_text,
    read_definition,
)
from panpan.capabilities.subagents.definitions.load import AgentDefinitions, given_definitions, load_definitions
from panpan.capabilities.subagents.definitions.read_definition import (
    Problem,
    name_problem,
    notes_on_tools,
    notes_on_tools_in,
)
from panpan.cli_kit.commands import CommandGroup, chosen_folder, program_of
from panpan.cli_kit.options import RUN_OPTIONS
from panpan.config.locations import Locations
from panpan.config.places import MAX_BYTES, BroughtFile, Places, files_below
from panpan.config.trust import trust_of
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_for_terminal, clean_line, printable
from panpan.types.agent import AgentDefinition, parse_agents

_CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose agents count.")
_MAX_SHOWN_CHARS = 100
"""Most characters of a description in the list."""


@click.group("agents", cls=CommandGroup)
def agents() -> None:
    """List, show, create and check subagents.

    They are Markdown files with a head, in the folders .panpan/agents, .claude/agents, .agents/agents and agents of the
    project, and in ~/.panpan/agents and ~/.claude/agents.
    """


@agents.command("list")
@_CWD
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def list_agents(ctx: click.Context, cwd: Path | None, as_json: bool) -> int:
    """List the agents, where each is defined, and when it is used."""
    locations = _locations(ctx, cwd)
    definitions = _definitions(ctx, locations)
    if as_json:
        agents = [_as_json(one) for one in definitions.all]
        click.echo(json.dumps({"agents": agents, "warnings": definitions.warnings}, indent=2))
        return 0
    width = max((len(name) for name in definitions.names), default=0)
    for one in definitions.all:
        click.echo(f"{one.name:<{width}}  {_where(one, locations)}  {_short(one.description)}")
    for one in definitions.hidden:
        stronger = definitions.get(one.name)
        assert stronger is not None
        by = _where(stronger, locations)
        click.echo(f"{_where(one, locations)}: {one.name} is defined by {by}, which counts", err=True)
    for problem in definitions.problems:
        if problem.text == NOT_FILLED_IN:
            click.echo(f"panpan: note: {problem}", err=True)
    for warning in definitions.warnings:
        click.echo(f"panpan: warning: {warning}", err=True)
    return 0


@agents.command("show")
@click.argument("name")
@_CWD
@click.pass_context
def show(ctx: click.Context, name: str, cwd: Path | None) -> int:
    """Print the definition of the agent NAME that is used here."""
    locations = _locations(ctx, cwd)
    definitions = _definitions(ctx, locations)
    definition = definitions.get(name)
    if definition is None:
        raise ConfigError(f"there is no agent {printable(name)!r}; there are {', '.join(definitions.names)}")
    click.echo(f"from {_where(definition, locations)}", err=True)
    click.echo(clean_for_terminal(as_text(definition)), nl=False)
    for problem in definitions.problems:
        if problem.source == definition.source:
            click.echo(f"panpan: note: {problem}", err=True)
    return 0


@agents.command("new")
@click.argument("name")
@click.option("--user", "is_for_user", is_flag=True, help="Write it to the panpan home, for all projects.")
@_CWD
@click.pass_context
def new(ctx: click.Context, name: str, is_for_user: bool, cwd: Path | None) -> int:
    """Create the file of a new agent NAME for you to fill in; never overwrite one."""
    if problem := name_problem(name):
        raise ConfigError(problem)
    locations = _locations(ctx, cwd)
    folder = locations.home / "agents" if is_for_user else locations.project_root / OWN_FOLDER
    path = folder / f"{name}.md"
    try:
        if is_for_user:
            make_private_folder(folder)
        mode = 0o600 if is_for_user else None
        write_atomic(path, new_text(name).encode(), mode=mode, must_not_exist=True, follow_symlinks=True)
    except FileChangedError:
        raise ConfigError(f"{printable(str(path))} exists already, and was left as it is") from None
    except ToolError as error:
        raise ConfigError(printable(str(error))) from error
    click.echo(printable(str(path)))
    click.echo("fill in its description: until then the model is not offered it", err=True)
    if not is_for_user:
        click.echo("then trust the project with it: panpan trust add", err=True)
    return 0


@agents.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@_CWD
@click.pass_context
def check(ctx: click.Context, paths: Sequence[Path], cwd: Path | None) -> int:
    """Check all definitions, or those in PATH; exit with 1 if one is invalid."""
    known = sorted(program_of(ctx).known_tools())
    given: Sequence[AgentDefinition] = ()
    unread: list[str] = []
    root = Path()
    if paths:
        files = [file for path in paths for file in _files_at(path, unread)]
    else:
        given = given_definitions(_given(ctx))
        places = _places(ctx, _locations(ctx, cwd))
        trust, root = places.trust.for_this_run(), places.trust.files.root
        unread = [f"{name}: {reason}" for name, reason in trust.files.problems.items()]
        files = list(replace(places, trust=trust).files(("agents",), unread))
    found, problems = list(given), [*map(Problem, unread)]
    problems += [note for one in given for note in notes_on_tools(one, known)]
    for file in files:
        source = str(root / file.name)
        definition, wrong = read_definition(file, source)
        problems += [*wrong, *notes_on_tools_in(head_of(file), known, source)]
        found += [definition] if definition is not None else []
    for problem in sorted(problems, key=lambda problem: (problem.source, problem.line)):
        place = f"{printable(problem.place)}: " if problem.place else ""
        click.echo(f"{place}{_kind(problem)}: {printable(problem.text)}")
    errors = sum(problem.is_error for problem in problems)
    click.echo(f"{len(found)} usable, {errors} errors, {len(problems) - errors} notes", err=True)
    return 1 if errors else 0


def _kind(problem: Problem) -> str:
    return "error" if problem.is_error else "note"


def _files_at(path: Path, unread: list[str]) -> Iterator[BroughtFile]:
    """Yield the file at a path, or the files of the folder there."""
    if not path.exists():
        raise ConfigError(f"there is no file or folder {printable(str(path))}")
    for file in files_below(path, "*.md", unread) if path.is_dir() else [str(path)]:
        try:
            data = read_users_file(file, max_bytes=MAX_BYTES)
        except ToolError as error:
            unread.append(str(error))
        else:
            yield BroughtFile("agents", file, data, is_users=True)


def _locations(ctx: click.Context, cwd: Path | None) -> Locations:
    return Locations.find(chosen_folder(ctx, cwd).expanduser(), os.environ)


def _given(ctx: click.Context) -> Mapping[str, Any]:
    options: Mapping[str, Any] = ctx.meta.get(RUN_OPTIONS) or {}
    return parse_agents(options["agents"]) if options.get("agents") else {}


def _places(ctx: click.Context, locations: Locations) -> Places:
    options = ctx.meta.get(RUN_OPTIONS) or {}
    folders = (*options.get("plugin_folders", ()), *options.get("plugin_folders_without_mcp", ()))
    return Places(locations.home, trust_of(locations), [Path(folder).absolute() for folder in folders])


def _definitions(ctx: click.Context, locations: Locations) -> AgentDefinitions:
    return load_definitions(_places(ctx, locations), _given(ctx))


def _where(definition: AgentDefinition, locations: Locations) -> str:
    source = definition.source
    return printable(locations.shown(Path(source)) if source.startswith("/") else source)


def _short(description: str) -> str:
    line = clean_line(description)
    return line if len(line) <= _MAX_SHOWN_CHARS else f"{line[: _MAX_SHOWN_CHARS - 1].rstrip()}…"


def _as_json(definition: AgentDefinition) -> dict[str, Any]:
    return dict(_values(definition))


def _values(definition: AgentDefinition) -> Iterator[tuple[str, Any]]:
    yield "name", definition.name
    yield "source", definition.source
    yield "description", definition.description
    yield "tools", None if definition.access.tools is None else list(definition.access.tools)
    yield "disallowedTools", list(definition.access.disallowed_tools)
    yield "model", definition.model.name
    yield "permissionMode", definition.access.permission_mode
    yield "maxTurns", definition.run.max_turns
    yield "background", definition.run.background
    yield "isolation", definition.run.isolation
    yield "color", definition.color
    limits = definition.run.limits
    yield "limits", {"usd": limits.usd, "tokens": limits.tokens, "seconds": limits.seconds, "calls": limits.calls}
