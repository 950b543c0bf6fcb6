"""`panpan repro extract`: proposals from a document, written beside what is there, and what was found on the screen."""

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
from anyio import to_thread

from panpan.cli_kit.failures import json_line
from panpan.config.locations import panpan_home
from panpan.errors import ConfigError, ToolError
from panpan.repro.claims import claims_file
from panpan.repro.claims.claims_file import NAME, save_claims
from panpan.repro.papers.paper_table import PaperTables
from panpan.repro.papers.proposals import Merged, Proposals, merge, propose, proposed_text, source_of
from panpan.repro.papers.repository_addresses import NamedRepositories
from panpan.repro.papers.tables import MAX_BYTES, ReadPaper, read_by_worker, read_paper
from panpan.system.files.read_file import read_regular_file, read_users_file
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line, counted

_MOST_DIFFERING = 20
_STDOUT = Path("-")

EXAMPLE = """\
# Claims of a paper; docs/reproduction.md has all keys.

[paper]
title = ""
source = ""                                 # a file beside this one, or an address

# [[claim]]
# id = "table-1/trimmed-mean"
# table = "Table 1"
# row = "trimmed mean"
# value = "3.50"                            # as it is written, so that its digits count
# command = "python experiment.py --seed {seed}"
# extract = { output = "trimmed mean: ([0-9.]+)" }
# seed = 0
"""


ReadDocument: TypeAlias = Callable[[Path], Awaitable[ReadPaper]]


async def read_document(path: Path) -> ReadPaper:
    """Return the tables of a document of the user, read in the sandbox.

    Raises:
        ConfigError: It is missing, too large, damaged or encrypted.
    """
    data = await to_thread.run_sync(document_bytes, path)
    return await read_paper(data, path.name, CommandSandbox(is_on=True, home=panpan_home(os.environ, path.parent)))


async def read_named_repositories(path: Path) -> NamedRepositories:
    """Return the repositories that a document of the user names, read in the sandbox.

    Raises:
        ConfigError: It is missing, too large, damaged or encrypted.
    """
    data = await to_thread.run_sync(document_bytes, path)
    sandbox = CommandSandbox(is_on=True, home=panpan_home(os.environ, path.parent))
    return await read_by_worker("repositories", NamedRepositories, data, path.name, sandbox)


def document_bytes(path: Path) -> bytes:
    """Return the bytes of a document.

    Raises:
        ConfigError: It is missing or too large, or may not be read.
    """
    try:
        return read_users_file(str(path), max_bytes=MAX_BYTES)
    except ToolError as error:
        raise ConfigError(f"the paper cannot be read: {error}") from error


async def extract(
    paper: Path, cwd: Path, form: str, given: Mapping[str, Any], *, read: ReadDocument = read_document
) -> int:
    """Propose claims from a document, add them to a claims.toml, and say so. Return the exit code, which is 0.

    Args:
        paper: The document.
        cwd: Folder for relative paths.
        form: `text` or `json`, for the summary.
        given: The options `output`, `tables` and `writes_example`.
        read: Reads the document.

    Raises:
        ConfigError: The document or the claims.toml cannot be read, or that cannot be written.
    """
    source = _absolute(cwd, paper)
    target = _STDOUT if given["output"] == _STDOUT else _target(cwd, given["output"])
    document = await read(source)
    _warn(_notes(document.tables, paper.name))
    proposals = propose(document, source_of(source, target.parent), given["tables"])
    _warn(_left_out(proposals))
    if not proposals.claims.claim:
        _warn([f"{clean_line(paper.name)} has no tables with numbers; write claims by hand"])
        if given["writes_example"] and target != _STDOUT:
            await to_thread.run_sync(lambda: save_claims(target, EXAMPLE.encode(), old=None))
            click.echo(f"wrote an example: {target}")
        return 0
    if target == _STDOUT:
        click.echo(proposed_text(proposals), nl=False)
        return 0
    old = await to_thread.run_sync(_old, target)
    merged = merge(old, proposals)
    if merged.added:
        await to_thread.run_sync(lambda: save_claims(target, merged.data, old=old))
    _tell(proposals, merged, target, form)
    return 0


def _absolute(cwd: Path, path: Path) -> Path:
    return Path(os.path.realpath(cwd / path.expanduser()))


def _target(cwd: Path, output: Path) -> Path:
    """Return the file for the claims; of a folder, the claims.toml in it.

    Raises:
        ConfigError: It is a link that leads elsewhere, such as one that came with a repository.
    """
    seen = cwd / output.expanduser()
    path = Path(os.path.realpath(seen / NAME if seen.is_dir() else seen))
    folder = Path(os.path.realpath(seen if seen.is_dir() else seen.parent))
    if not path.is_relative_to(folder):
        raise ConfigError(f"{seen} is a link that leads to {path}; name that file with -o, or remove the link")
    return path


def _old(path: Path) -> bytes | None:
    if not path.exists():
        return None
    try:
        return read_regular_file(path, max_bytes=claims_file.MAX_BYTES)
    except ToolError as error:
        raise ConfigError(f"{path} cannot be read: {error}; change or remove it") from error


def _notes(tables: PaperTables, name: str) -> Iterator[str]:
    """Yield sentences about parts of the document that could not be read."""
    shown = clean_line(name)
    if tables.scans:
        yield f"{shown} has scans without text: pages {_ranges(tables.scans)}; recognise their text first"
    if tables.pages and tables.pages_read is not None and tables.pages_read < tables.pages:
        yield f"only the first {tables.pages_read} of {tables.pages} pages of {shown} were read"


def _left_out(proposals: Proposals) -> Iterator[str]:
    if proposals.left_out:
        what = "1 cell is" if proposals.left_out == 1 else f"{proposals.left_out:,} cells are"
        yield f"{what} left out, not being one number, such as `45.2 / 46.1`"
    if proposals.beyond:
        yield f"{proposals.beyond:,} more numbers are left out; choose tables with --table"


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers in order as `1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _warn(lines: Iterator[str] | Sequence[str]) -> None:
    for line in lines:
        click.echo(line, file=sys.stderr)


def _tell(proposals: Proposals, merged: Merged, target: Path, form: str) -> None:
    if form == "json":
        facts = {
            "file": str(target),
            "added": merged.added,
            "known": merged.known,
            "differing": [own.id for own, _ in merged.differing],
            "left_out": proposals.left_out,
            "tables": [{"name": one.name, "page": one.page, "claims": one.claims} for one in proposals.tables],
        }
        click.echo(json_line(facts), nl=False)
        return
    for table in proposals.tables:
        page = f", page {table.page}" if table.page is not None and "page" not in table.name else ""
        click.echo(f"{clean_line(table.name)}{page}: {counted(table.claims, 'number')}")
    for own, other in merged.differing[:_MOST_DIFFERING]:
        click.echo(clean_line(f"{own.id}: {target.name} says {own.value}, the paper {other.value}; left as it is"))
    if len(merged.differing) > _MOST_DIFFERING:
        click.echo(f"{len(merged.differing) - _MOST_DIFFERING:,} more differ")
    there = f"; {merged.known:,} {'was' if merged.known == 1 else 'were'} there" if merged.known else ""
    unconfirmed = "" if not merged.added else ", which nobody has confirmed"
    click.echo(f"{target}: {counted(merged.added, 'claim')} added{unconfirmed}{there}")
    click.echo("keep those that you want, give them commands, then: panpan repro confirm")
