"""The picture in the clipboard, which a terminal cannot paste: it is put into a file, and the file is mentioned.

The rule: the programs that know the clipboard are the user's own, with the user's environment; whatever they do, what
is typed stays, and keys are taken meanwhile.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

import anyio
from anyio import to_thread

from panpan.errors import PanpanError
from panpan.faces.terminal.input.draft import Draft
from panpan.system.files.folder_tree import remove_tree
from panpan.types.mentions import written

TIMEOUT_S = 5.0
"""A picture comes at once, or the program that has it does not answer."""
MAX_BYTES = 50_000_000
"""Larger than any provider takes."""
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


class ClipboardPaste:
    """Pastes pictures.

    Args:
        draft: What is typed.
        env: The user's environment.
        add_folder: Lets what is mentioned be in one more folder. May raise `PanpanError`.
        say: Told why nothing was pasted.
    """

    def __init__(
        self,
        draft: Draft,
        env: Mapping[str, str],
        add_folder: Callable[[Path], object],
        say: Callable[[str], None],
    ) -> None:
        self._draft = draft
        self._env = env
        self._add_folder = add_folder
        self._say = say
        self._is_wanted = anyio.Event()
        self._pasted = 0

    def want(self) -> None:
        """Paste the picture where the caret is, as soon as it is there."""
        self._is_wanted.set()

    async def run(self) -> None:
        """Paste what is wanted, until cancelled; the files are gone then, since what was sent has the pictures."""
        folder: Path | None = None
        try:
            while True:
                await self._is_wanted.wait()
                self._is_wanted = anyio.Event()
                try:
                    folder = folder or self._new_folder()
                    await self._paste(folder)
                except (PanpanError, OSError) as error:
                    self._say(f"the picture cannot be kept in a file: {error}")
        finally:
            if folder is not None:
                with suppress(OSError):
                    remove_tree(folder)

    def _new_folder(self) -> Path:
        """Return a folder for its owner alone."""
        folder = Path(tempfile.mkdtemp(prefix="panpan-pictures-"))
        self._add_folder(folder)
        return folder

    async def _paste(self, folder: Path) -> None:
        self._pasted += 1
        file = folder / f"picture-{self._pasted}.png"
        problem = await save_picture(file, self._env)
        if problem:
            self._say(problem)
        else:
            self._draft.insert(f"{written(str(file))} ")


async def save_picture(file: Path, env: Mapping[str, str]) -> str:
    """Write the picture in the clipboard into a new file, and return a sentence where there is none.

    Args:
        file: As PNG; not there where there is no picture.
        env: The user's environment.

    Raises:
        OSError: It cannot be written.
    """
    commands = readers(env, file)
    for command in commands:
        if await _reads(command, file, env):
            return ""
    return _NO_PICTURE if commands else _NO_PROGRAM


def readers(env: Mapping[str, str], file: Path) -> Sequence[Sequence[str]]:
    """Return the commands that may read a picture from the clipboard; each prints it, or writes it into `file`."""
    known: Sequence[tuple[bool, Sequence[str]]] = (
        (bool(env.get("WAYLAND_DISPLAY")), ("wl-paste", "--no-newline", "--type", "image/png")),
        (bool(env.get("DISPLAY")), ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")),
        (True, ("pngpaste", "-")),
        (True, ("osascript", "-e", _APPLE_SCRIPT, str(file))),
    )
    found = [(shutil.which(command[0], path=env.get("PATH")), command) for may_work, command in known if may_work]
    return [(program, *command[1:]) for program, command in found if program]


async def _reads(command: Sequence[str], file: Path, env: Mapping[str, str]) -> bool:
    """Run a command, and return whether a picture is in the file now."""
    # Commands of the model may write in this folder, and could have put a link there that leads anywhere.
    fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with anyio.move_on_after(TIMEOUT_S):
            await anyio.run_process(command, stdin=DEVNULL, stdout=fd, stderr=DEVNULL, check=False, env=env)
        return await to_thread.run_sync(_holds_picture, fd, file)
    finally:
        os.close(fd)


def _holds_picture(fd: int, file: Path) -> bool:
    """Return whether a picture is in the file; what is none is deleted."""
    is_picture = os.pread(fd, len(_PNG), 0) == _PNG and os.fstat(fd).st_size <= MAX_BYTES
    if not is_picture:
        file.unlink()
    return is_picture
