"""Subcommands about skills, and those that begin with one.

`panpan commit`: Commit with a model; review reviews, ci in CI; run runs words.
`panpan review`:
`panpan run`:
`panpan skills`: List your skills and commands, and check their files.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from panpan.capabilities.skills.capability import OWN_SKILLS
from panpan.capabilities.skills.catalogue import SkillSet
from panpan.capabilities.skills.skill_file import SKILL_FILE, SkillError, check_skill, read_skill
from panpan.cli_kit.commands import CommandGroup, chosen_folder, run_panpan, settings_of_folder
from panpan.config.places import MAX_BYTES, BroughtFile
from panpan.errors import ConfigError, ToolError
from panpan.system.files.read_file import read_users_file
from panpan.system.text.terminal_text import clean_line, printable

_CWD = click.option("--cwd", type=click.Path(path_type=Path), metavar="FOLDER", help="Folder whose skills count.")
_MAX_SHOWN_CHARS = 100
"""Most characters of a description in the list."""


def _begin_with(name: str) -> click.Command:
    """Return the subcommand that runs panpan with a skill of its own as the first prompt."""

    @click.command(
        name,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        help=f"{OWN_SKILLS[name]}: the same as panpan '/{name} WORDS'.",
        epilog=f"All options of panpan work, too:  panpan {name} 'only the docs' --yes",
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[WORDS] [OPTIONS]...")
    @click.pass_context
    def begin(ctx: click.Context, words: tuple[str, ...]) -> int:
        has_wish = bool(words) and not words[0].startswith("-")
        wish, options = (words[0], words[1:]) if has_wish else ("", words)
        folder = ["--cwd", str(chosen_folder(ctx, None))]  # a later --cwd overrides it
        return run_panpan(ctx, [*folder, *options, "--", f"/{name} {wish}".rstrip()])

    return begin


commit = _begin_with("commit")
review = _begin_with("review")
run = _begin_with("run")


@click.group("skills", cls=CommandGroup)
def skills() -> None:
    """List your skills and commands, and check their files.

    They are folders with a SKILL.md in .panpan/skills, .claude/skills and .agents/skills, and Markdown files in
    .panpan/commands and .claude/commands, of a project that you trust and of your home.
    """


@skills.command("list")
@_CWD
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def list_skills(ctx: click.Context, cwd: Path | None, as_json: bool) -> int:
    """List the skills and commands, where each is, and what of them cannot be used."""
    _, loaded, _ = settings_of_folder(ctx, cwd)
    found = SkillSet(loaded.places)
    every = list(found.all.values())
    if as_json:
        rows = [
            {
                "name": one.name,
                "description": one.description,
                "place": one.place,
                "is_for_model": one.is_for_model,
                "is_for_user": one.is_for_user,
                "allowed_tools": list(one.allowed_tools),
                "agent": one.fork.agent if one.fork else None,
                "paths": list(one.paths),
            }
            for one in every
        ]
        click.echo(json.dumps({"skills": rows, "refused": found.refused, "notes": found.asides}, indent=2))
        return 0
    width = max((len(one.name) for one in every), default=0)
    for one in every:
        text = clean_line(one.description)
        shown = text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_MAX_SHOWN_CHARS].rstrip()}…"
        click.echo(f"{one.name:<{width}}  {shown}")
        click.echo(f"{'':<{width}}  {printable(one.place)}")
    if not every:
        click.echo("there are no skills; `panpan skills --help` says where they would be", err=True)
    for line in found.refused:
        click.echo(f"panpan: warning: not used: {clean_line(line)}", err=True)
    for line in found.asides:
        click.echo(f"panpan: note: {clean_line(line)}", err=True)
    return 0


@skills.command("check")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@_CWD
@click.pass_context
def check(ctx: click.Context, paths: Sequence[Path], cwd: Path | None) -> int:
    """Check all skills, or those in PATH, as strictly as the specification; exit with 1 if one is wrong.

    PATH is the folder of a skill, or a folder of such folders. Keys that only Claude Code knows are wrong there.
    """
    unread: list[str] = []
    if paths:
        files = [file for path in paths for file in _files_at(path, unread)]
    else:
        _, loaded, _ = settings_of_folder(ctx, cwd)
        files = list(loaded.places.files(("skills",), unread))
    found = [list(_problems(file)) for file in files]
    for problem in (*unread, *(problem for problems in found for problem in problems)):
        click.echo(clean_line(problem))
    wrong = len(unread) + sum(map(bool, found))
    click.echo(f"{len(files) + len(unread)} checked, {wrong or 'none'} wrong", err=True)
    return int(bool(wrong))


def _files_at(path: Path, unread: list[str]) -> Iterator[BroughtFile]:
    try:
        found = [path / SKILL_FILE] if path.is_dir() else [path]
        if path.is_dir() and not found[0].exists():
            found = sorted(path.glob(f"*/{SKILL_FILE}")) or found
    except OSError as error:
        raise ConfigError(f"{printable(str(path))} cannot be read: {error.strerror}") from error
    for file in found:
        try:
            data = read_users_file(str(file), max_bytes=MAX_BYTES)
        except ToolError as error:
            unread.append(str(error))
        else:
            yield BroughtFile("skills", str(file.absolute()), data, is_users=True)


def _problems(file: BroughtFile) -> Iterator[str]:
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        yield f"{file.name}: it is not UTF-8 text"
        return
    yield from (f"{file.name}: {problem}" for problem in check_skill(text, Path(file.name).parent.name))
    try:
        read_skill(file)
    except SkillError as error:
        yield str(error)
