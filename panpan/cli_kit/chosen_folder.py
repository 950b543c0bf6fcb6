"""The folder that a subcommand works in: `panpan --cwd X doctor` and `panpan doctor --cwd X` mean the same."""

from pathlib import Path

import click


def chosen_folder(ctx: click.Context, cwd: Path | None) -> Path:
    """Return the folder named by the command itself, else by `panpan`, else the current one."""
    outer = next((context.params["cwd"] for context in _above(ctx) if context.params.get("cwd")), None)
    return cwd or Path(outer or "")


def _above(ctx: click.Context) -> list[click.Context]:
    contexts = []
    while ctx.parent is not None:
        ctx = ctx.parent
        contexts.append(ctx)
    return contexts
