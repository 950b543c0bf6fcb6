"""Shows long text in the user's pager, which has the terminal meanwhile.

The rule: a pager passes on what it is given, so nothing gets to it that could drive the terminal, but for colours.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from shutil import which
from tempfile import NamedTemporaryFile
from typing import IO

from anyio import to_thread

from panpan.errors import ConfigError
from panpan.faces.terminal.screen.foreground import run_in_foreground
from panpan.system.text.terminal_text import clean_for_terminal

_COLOURS = re.compile(r"(\x1b\[[0-9;:]{0,40}m)")
"""What `Theme.paint` writes, and nothing that does more than look different."""


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


async def page(lines: Iterable[str], env: Mapping[str, str]) -> None:
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


def cleaned(text: str) -> str:
    """Return `text` without anything that drives a terminal except colours."""
    parts = _COLOURS.split(text)  # those at odd places are colours
    return "".join(part if number % 2 else clean_for_terminal(part) for number, part in enumerate(parts))


def _write(file: IO[str], lines: Iterable[str]) -> None:
    file.writelines(f"{cleaned(line)}\n" for line in lines)
    file.flush()
