"""`panpan agents`: List, show, create and check subagents."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from panpan.capabilities.subagents.definitions.files import (
    NOT_FILLED_IN,
    OWN_FOLDER,
    Place,
    ReadFile,
    as_text,
    format_of,
    head_of,
    new_text,
    places_of_project,
    places_of_user,
    read_file,
    read_place,
)
from panpan.capabilities.subagents.definitions.load import COMMAND_LINE as GIVEN
from panpan.capabilities.subagents.definitions.load import AgentDefinitions, load_definitions
from panpan.capabilities.subagents.definitions.read_definition import (
    Problem,
    name_problem,
    notes_on_tools,
    notes_on_tools_in,
)
from panpan.cli_kit.commands import CommandGroup, chosen_folder, program_of
from panpan.cli_kit.options import RUN_OPTIONS
from panpan.config.locations import Locations
from panpan.config.places import Places
from panpan.config.trust import trust_of
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import FileChangedError, write_atomic
from panpan.system.files.canonical import user_home
from panpan.system.files.folder_tree import make_private_folder
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
    return 0


@agents.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@_CWD
@click.pass_context
def check(ctx: click.Context, paths: Sequence[Path], cwd: Path | None) -> int:
    """Check all definitions, or those in PATH; exit with 1 if one is invalid."""
    known = sorted(program_of(ctx).known_tools())
    if paths:
        files = list(_files_at(paths))
        found = [file.definition for file, _ in files if file.definition is not None]
        problems = [problem for file, _ in files for problem in file.problems]
    else:
        locations = _locations(ctx, cwd)
        definitions = _definitions(ctx, locations)
        files = list(_files_of(locations, _folder(ctx)))
        found, problems = [*definitions.all, *definitions.hidden], list(definitions.problems)
        problems += [note for one in found if one.source == GIVEN for note in notes_on_tools(one, known)]
    problems += [
        note for file, place in files for note in notes_on_tools_in(head_of(file, place), known, str(file.path))
    ]
    for problem in sorted(problems, key=lambda problem: (problem.source, problem.line)):
        click.echo(f"{printable(problem.place)}: {_kind(problem)}: {printable(problem.text)}")
    errors = sum(problem.is_error for problem in problems)
    click.echo(f"{len(found)} usable, {errors} errors, {len(problems) - errors} notes", err=True)
    return 1 if errors else 0


def _kind(problem: Problem) -> str:
    return "error" if problem.is_error else "note"


def _files_of(locations: Locations, cwd: Path) -> Iterator[tuple[ReadFile, Place]]:
    """Yield all files that may define something here, each with its folder."""
    users = places_of_user(locations.home, user_home())
    for place in (*places_of_project(locations.project_root, cwd, users=users), *users):
        yield from ((file, place) for file in read_place(place))


def _files_at(paths: Sequence[Path]) -> Iterator[tuple[ReadFile, Place]]:
    """Yield the files at these paths, each with its folder."""
    for path in paths:
        if not path.exists():
            raise ConfigError(f"there is no file or folder {printable(str(path))}")
        place = Place(path, format_of(path.absolute()), is_for_panpan=True)
        yield from ((file, place) for file in (read_place(place) if path.is_dir() else (read_file(path, place),)))


def _locations(ctx: click.Context, cwd: Path | None) -> Locations:
    return Locations.find(chosen_folder(ctx, cwd).expanduser(), os.environ)


def _definitions(ctx: click.Context, locations: Locations) -> AgentDefinitions:
    options: dict[str, Any] = ctx.meta.get(RUN_OPTIONS) or {}
    given = parse_agents(options["agents"]) if options.get("agents") else None
    folders = [Path(folder).absolute() for folder in options.get("plugin_folders") or ()]
    places = Places(locations.home, trust_of(locations), folders)
    return load_definitions(locations.project_root, _folder(ctx), user_home(), given, places=places)


def _folder(ctx: click.Context) -> Path:
    return chosen_folder(ctx, ctx.params.get("cwd")).expanduser().resolve()


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
