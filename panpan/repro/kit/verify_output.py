"""Printing of what a kit gave."""

import json

import click

from panpan.repro.kit.compare import table, wrapped
from panpan.repro.kit.verify import Verification
from panpan.system.text.terminal_text import clean_for_terminal, clean_line


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
    others = [clean_line(str(one["id"])) for one in found.claims if not one["is_same"]]
    click.echo(f"not as in the check: {', '.join(others)}" if others else "all verdicts are those of the check")
    return int(not found.is_same)
