"""Shows long text in the user's pager, which has the terminal meanwhile."""

import os
import shlex
from collections.abc import Mapping, Sequence
from shutil import which
from tempfile import NamedTemporaryFile
from typing import IO

from anyio import to_thread

from panpan.errors import ConfigError
from panpan.ui.repl.foreground import run_in_foreground


def pager_command(env: Mapping[str, str]) -> Sequence[str]:
    """Return the pager that `PAGER` names, else `less`, else `more`.

    Raises:
        ConfigError: There is none.
    """
    try:
        chosen = shlex.split(env.get("PAGER", ""))
    except ValueError as error:
        raise ConfigError(f"PAGER cannot be read as a command: {error}") from error
    if chosen and which(chosen[0]):
        return [*chosen, *(["-R", "+G"] if chosen == ["less"] else [])]
    if which("less"):
        return ["less", "-R", "+G"]  # colours, from the end, where the newest output is
    if which("more"):
        return ["more"]
    raise ConfigError("there is no pager; install less, or set PAGER")


async def page(lines: Sequence[str], env: Mapping[str, str]) -> None:
    """Show lines until the user leaves the pager. The terminal must be handed over before.

    Raises:
        ConfigError: There is no pager, or it could not be started.
    """
    command = pager_command(env)
    with NamedTemporaryFile("w", encoding="utf-8", errors="replace", prefix="panpan-", suffix=".txt") as file:
        await to_thread.run_sync(_write, file, lines)
        try:
            await run_in_foreground([*command, file.name], {**os.environ, **env})
        except OSError as error:
            raise ConfigError(f"the pager {command[0]} could not be started: {error.strerror}") from error


def _write(file: IO[str], lines: Sequence[str]) -> None:
    file.write("\n".join(lines) + "\n")
    file.flush()
