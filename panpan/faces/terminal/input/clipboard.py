"""Programs that read pictures from the clipboard, and those that put text there."""

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio import to_thread

TIMEOUT_S = 5.0
"""Seconds to wait for a clipboard program; a picture comes at once, or never."""
MAX_BYTES = 50_000_000
"""Most bytes of a picture, more than any provider takes."""
_PNG = b"\x89PNG\r\n\x1a\n"
_APPLE_SCRIPT = """\
on run arguments
  set picture to the clipboard as «class PNGf»
  set target to open for access POSIX file (item 1 of arguments) with write permission
  write picture to target
  close access target
end run
"""
_NO_PROGRAM = "no program here can read the clipboard; install wl-clipboard, xclip or pngpaste"
_NO_PICTURE = "there is no picture in the clipboard"


async def save_picture(file: Path, env: Mapping[str, str]) -> str:
    """Write the picture in the clipboard into a new PNG file; if there is none, return the problem as a sentence.

    Raises:
        OSError: The file cannot be written.
    """
    commands = readers(env, file)
    for command in commands:
        if await _reads(command, file, env):
            return ""
    return _NO_PICTURE if commands else _NO_PROGRAM


def readers(env: Mapping[str, str], file: Path) -> Sequence[Sequence[str]]:
    """Return the commands to try for reading a picture from the clipboard; each prints it or writes it into `file`."""
    known: Sequence[tuple[bool, Sequence[str]]] = (
        (bool(env.get("WAYLAND_DISPLAY")), ("wl-paste", "--no-newline", "--type", "image/png")),
        (bool(env.get("DISPLAY")), ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
        (True, ("pngpaste", "-")),
        (True, ("osascript", "-e", _APPLE_SCRIPT, str(file))),
    )
    return _found(known, env)


async def _reads(command: Sequence[str], file: Path, env: Mapping[str, str]) -> bool:
    # The model's commands may write in this folder, and could have put a link there that leads anywhere.
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with anyio.move_on_after(TIMEOUT_S):
            await anyio.run_process(command, stdin=DEVNULL, stdout=fd, stderr=DEVNULL, check=False, env=env)
        return await to_thread.run_sync(_holds_picture, fd, file)
    finally:
        os.close(fd)


def _holds_picture(fd: int, file: Path) -> bool:
    """Return True if the file holds a picture; otherwise delete it."""
    is_picture = os.pread(fd, len(_PNG), 0) == _PNG and os.fstat(fd).st_size <= MAX_BYTES
    if not is_picture:
        file.unlink()
    return is_picture


def writers(env: Mapping[str, str]) -> Sequence[Sequence[str]]:
    """Return the commands to try for copying standard input to the clipboard."""
    display = bool(env.get("DISPLAY"))
    known: Sequence[tuple[bool, Sequence[str]]] = (
        (bool(env.get("TMUX")), ("tmux", "load-buffer", "-w", "-")),
        (bool(env.get("WAYLAND_DISPLAY")), ("wl-copy",)),
        (display, ("xclip", "-selection", "clipboard", "-in")),
        (display, ("xsel", "--clipboard", "--input")),
        (True, ("pbcopy",)),
    )
    return _found(known, env)


async def put_into_clipboard(text: str, env: Mapping[str, str]) -> Sequence[str]:
    """Give a text to each available clipboard program, and return the programs that took it."""
    took = []
    for command in writers(env):
        with anyio.move_on_after(TIMEOUT_S), suppress(OSError):  # such as a program that ends early
            data = text.encode(errors="replace")
            ended = await anyio.run_process(command, input=data, stdout=DEVNULL, stderr=DEVNULL, check=False, env=env)
            took += [] if ended.returncode else [command[0]]
    return took


def _found(known: Sequence[tuple[bool, Sequence[str]]], env: Mapping[str, str]) -> Sequence[Sequence[str]]:
    """Return the commands that apply here and whose program is installed, each with its path."""
    found = [(shutil.which(command[0], path=env.get("PATH")), command) for may_work, command in known if may_work]
    return [(program, *command[1:]) for program, command in found if program]
