"""`panpan trust`: trust in projects whose files could run programs or configure panpan.

Every line of a project's files is shown with invisible characters spelled out; nothing of the project is run.
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
import click

from panpan.cli_kit.commands import CommandGroup, chosen_folder
from panpan.config.keys import shown
from panpan.config.locations import Locations
from panpan.config.project_files import read_project_files, setting_of
from panpan.config.sources import load_settings
from panpan.config.trust import (
    Changed,
    FileChange,
    ProjectTrust,
    TrustStore,
    Untrusted,
    changes_since,
    trust_of,
    wide_root,
)
from panpan.errors import ConfigError
from panpan.system.files.canonical import canonical_path
from panpan.system.text.terminal_text import escape_invisible

_NO_FILES = "It has no files that would need it; language servers are started in trusted projects only."
_FOLDER = click.argument("folder", type=click.Path(path_type=Path), required=False)


@click.group("trust", cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> int:
    """Show the files of this project that could run or configure panpan, and whether you trust it."""
    if ctx.invoked_subcommand is None:
        for line in trust_lines(trust_of(_locations(ctx, None))):
            click.echo(line)
    return 0


@command.command("list")
@click.pass_context
def list_trusted(ctx: click.Context) -> int:
    """List the trusted projects, and those that changed since."""
    home = _locations(ctx, None).home
    store = TrustStore(home)
    roots = list(store.trusted_roots())
    for root in roots:
        click.echo(f"{shown(root)}: {_listed(root, home, store)}")
    if not roots:
        click.echo("you have trusted no project", err=True)
    return 0


def _listed(root: Path, home: Path, store: TrustStore) -> str:
    if root.is_file():
        return "a campaign, trusted until its files change"
    if not root.is_dir():
        return "is gone"
    files = read_project_files(root, home)
    return summary(ProjectTrust(files, store.state(files)))


@command.command("add")
@_FOLDER
@click.option("--whole", is_flag=True, help="Even if the folder is or contains your home.")
@click.pass_context
def add(ctx: click.Context, folder: Path | None, whole: bool) -> int:
    """Trust the project in FOLDER, or here, until files that could run or configure panpan change."""
    locations = _locations(ctx, folder)
    root = locations.project_root
    if (wide := wide_root(root)) and not whole:
        raise ConfigError(f"{shown(root)} is {wide}: trust there covers every folder in it; add --whole if you mean it")
    files = read_project_files(root, locations.home)
    store = TrustStore(locations.home)
    store.keep(files, is_trusted=True)
    for line in trust_lines(ProjectTrust(files, store.state(files))):
        click.echo(line)
    return 0


@command.command("remove")
@_FOLDER
@click.pass_context
def remove(ctx: click.Context, folder: Path | None) -> int:
    """Stop trusting the project in FOLDER, or here, even if the folder is gone; or a campaign, by its campaign.toml."""
    is_no_folder = folder is not None and not folder.is_dir()
    locations = _locations(ctx, None if is_no_folder else folder)
    root = canonical_path(folder) if folder is not None and is_no_folder else locations.project_root
    if not TrustStore(locations.home).remove(root):
        raise ConfigError(f"you have never been asked about {shown(root)}; `panpan trust list` shows what you trust")
    click.echo(f"{shown(root)} is not trusted any more")
    return 0


def _locations(ctx: click.Context, folder: Path | None) -> Locations:
    return Locations.find(chosen_folder(ctx, folder), os.environ)


MAX_LINES = 300
MAX_CHARS = 20_000
"""Most characters of a question about trust; more would scroll away before it is read."""

Ask = Callable[[str], Awaitable[bool | None]]
"""Asks a question with the answers yes and no; None: the user did not answer."""


async def ask_for_trust(
    locations: Locations, env: Mapping[str, str], overrides: Mapping[str, object], ask: Ask, warn: Callable[[str], None]
) -> None:
    """Ask about a project with settings that only count if it is trusted, and save the answer.

    A yes covers exactly the bytes that were read for the question. The user is not asked if the answer would change
    nothing, nor twice about the same files, nor about more than a question can hold.

    Raises:
        ConfigError: The settings are broken, or the answer cannot be saved.
    """
    trust = await anyio.to_thread.run_sync(trust_of, locations)
    if not trust.files.content or not trust.may_be_asked:
        return
    withheld = load_settings(locations.project_root, env, overrides, locations, trust=trust).withheld
    if not withheld:
        return
    lines = [*trust_lines(trust), "Its settings that do not count yet:", *indent_lines(withheld)]
    if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_CHARS:
        warn(f"{shown(trust.files.root)} is not trusted and has too much to ask about; look at it with `panpan trust`")
        return
    if (answer := await ask("\n".join([*lines, "Do you trust these files? [y/n] "]))) is not None:
        await anyio.to_thread.run_sync(lambda: TrustStore(locations.home).keep(trust.files, is_trusted=answer))


def trust_lines(trust: ProjectTrust) -> Sequence[str]:
    """Return lines that say if the project is trusted, and show its files."""
    return tuple(_lines(trust))


def _lines(trust: ProjectTrust) -> Iterator[str]:
    root = escape_invisible(str(trust.files.root))
    match trust.state:
        case Changed(changes):
            yield f"{root} changed since you trusted it:"
            for change in changes:
                yield from _of_change(change)
        case Untrusted(problem=problem) if problem:
            yield f"{root} is not trusted, since {escape_invisible(problem)}"
        case Untrusted():
            files = "It has files that could run programs or configure panpan:"
            yield f"{root} is not trusted. {files if trust.files.content else _NO_FILES}"
            for change in changes_since({}, trust.files):
                yield from _of_change(change)
        case _:
            what_counts = ". These files count:" if trust.files.content else ", and has no file that could run programs"
            yield f"{root} is trusted{what_counts}"
            yield from indent_lines(_named(name) for name in trust.files.content)
    if wide := wide_root(trust.files.root):
        yield f"This is {wide}: trust covers every folder in it, except other repositories."


def _of_change(change: FileChange) -> Iterator[str]:
    kind = "" if change.kind == "new" else f"{change.kind}: "
    yield f"  {kind}{_named(change.name)}"
    if change.lines:
        yield from indent_lines(change.lines, "    ")
    elif change.kind == "changed":
        yield "    (values in it, which are not shown)"


def _named(name: str) -> str:
    setting = setting_of(name)
    return f"{escape_invisible(name)}{f' ({setting.reason})' if setting else ''}"


def indent_lines(lines: Iterable[str], by: str = "  ") -> Iterator[str]:
    """Yield the lines with an indent."""
    for line in lines:
        yield f"{by}{line}"


def summary(trust: ProjectTrust) -> str:
    """Return one line that says if the project is trusted."""
    match trust.state:
        case Changed(changes):
            return f"not trusted: {len(changes)} of its files changed since you trusted it"
        case Untrusted(problem=problem) if problem:
            return f"not trusted: {shown(problem)}"
        case Untrusted(is_refused=True):
            return "not trusted, as you said"
        case Untrusted():
            return "not trusted yet" if trust.files.content else "not trusted; it has no files that would need it"
        case _:
            count = len(trust.files.content)
            return f"trusted, with {count} file{'' if count == 1 else 's'} that could run or configure panpan"
