"""What of the machine a call may look at: no secrets, nothing that a rule withholds, no folder that needs an answer."""

from collections.abc import Callable
from pathlib import Path

from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.core.tool import ToolContext
from panpan.errors import ToolError


def machine_for(ctx: ToolContext, withholds: Callable[[Path, Path], bool]) -> MachineRoot:
    """Return the machine at hand, as far as a call may read it.

    Args:
        ctx: Of the call.
        withholds: Whether a rule of the user's speaks against showing what is in a file.
    """
    return MachineRoot(may_read=lambda path: ctx.paths.may_show(path) and not withholds(path, ctx.paths.root))


def readable_folder(folder: str, ctx: ToolContext) -> str:
    """Return a folder; nothing where only an answer of the user's would open it."""
    try:
        return str(ctx.paths.resolve(folder, access="read")) if folder else ""
    except ToolError:
        return ""
