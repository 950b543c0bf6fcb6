"""`panpan repro kit` and `panpan repro verify`: the kit of a folder that was checked, and what one gave."""

import json
from collections.abc import Mapping
from pathlib import Path

import click
from anyio import to_thread

from panpan.errors import ConfigError, ToolError
from panpan.repro.checking.check import CHECK_FILE, last_check, results_folder
from panpan.repro.checking.run_outputs import outputs_of
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.kit.compare import agreement, table, wrapped
from panpan.repro.kit.verify import Verification
from panpan.repro.kit.write_kit import Reproduction, write_kit
from panpan.system.files.canonical import canonical_path
from panpan.system.git.git import git_questions
from panpan.system.text.terminal_text import clean_for_terminal, clean_line


async def make_kit(
    folder: Path, into: Path | None, environ: Mapping[str, str], *, names_are_public: bool = False
) -> Path:
    """Write the kit of the last check of a folder, and return its place.

    Args:
        folder: A repository with claims.toml, or the folder of a reproduction; canonical.
        into: Folder of the kit; None: `kit` in the folder of the results.
        environ: The user's environment.
        names_are_public: True if names of people and machines may stay in the sources and in their address.

    Raises:
        ConfigError: There was no check, or something private would get into the kit.
        ToolError: It cannot be written.
    """
    results = results_folder(folder)
    check = await to_thread.run_sync(last_check, folder)
    if check is None:
        raise ConfigError(f"{results} has no {CHECK_FILE}; run panpan repro check first")
    loaded = await to_thread.run_sync(load_claims, folder)
    source = canonical_path(folder / "source") if results == folder else folder
    reproduction = Reproduction(
        claims_file=loaded.path,
        claims=loaded.claims,
        source=source,
        address=await _address_of(source, check.commit),
        reports=[results / "report.md", results / "report.html"],
        outputs=await to_thread.run_sync(outputs_of, check, results),
        folders=[folder, results],
        names_are_public=names_are_public,
        environ=environ,
    )
    return await write_kit(check, reproduction, into or results / "kit")


async def _address_of(source: Path, commit: str) -> str:
    """Return the address from which others get a commit; empty if no branch of it is known to have the commit."""
    if not commit:
        return ""
    try:
        ask = await git_questions(source)
        published = await ask(["branch", "--remotes", "--contains", commit])
        address = await ask(["remote", "get-url", "origin"])
    except ToolError:
        return ""
    is_known = published.exit_code == 0 and published.stdout.strip() and address.exit_code == 0
    return address.stdout.decode(errors="replace").strip() if is_known else ""


def show(found: Verification, form: str) -> int:
    """Print the outcome of a kit, and return the exit code: 0 if it is that of its check, else 1.

    Args:
        found: The outcome.
        form: "text" or "json".
    """
    if form == "json":
        click.echo(json.dumps({"is_same": found.is_same, "claims": found.claims, "packages": found.packages}))
        return int(not found.is_same)
    click.echo(clean_for_terminal(table(found.claims)))
    if found.packages:
        click.echo(clean_for_terminal("\n".join([*wrapped(clean_line(found.packages)), ""])))
    click.echo(clean_for_terminal(agreement(found.claims)))
    return int(not found.is_same)
