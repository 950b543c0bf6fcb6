"""The user's own editor for a prompt (Ctrl+G).

The rule: whatever goes wrong, what was typed is not lost: it stays in the input, and what the editor wrote and could
not be taken stays in its file, which is named. The editor is the user's program with the user's environment and the
real terminal, which the caller hands over. It is not run by `system/processes/process.py`, which gives a program
none.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import anyio
from anyio import to_thread

from panpan.errors import ToolError
from panpan.faces.terminal.screen.foreground import run_in_foreground
from panpan.system.files.folder_tree import remove_tree
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import without_controls
from panpan.types.dataclass import dataclass

MAX_BYTES = 5_000_000
_FALLBACKS = ("nano", "vi", "vim")


@dataclass(frozen=True, slots=True)
class EditorFailed:
    """The text stays as it was."""

    reason: str
    """A sentence for the user."""


async def edit_in_editor(
    text: str, env: Mapping[str, str], kept: Callable[[Path], None] = lambda _: None
) -> str | EditorFailed:
    """Let the user edit `text` in his editor and return what he saved.

    Args:
        text: What is typed.
        env: The user's environment: `VISUAL`, then `EDITOR` names the editor, maybe with arguments.
        kept: Told which file holds what he saved, where this is cancelled before he has left the editor.
    """
    command = editor_command(env)
    if isinstance(command, EditorFailed):
        return command
    try:
        folder = await to_thread.run_sync(_written_down, text)
    except OSError as exc:
        return EditorFailed(f"the text could not be given to an editor: {exc.strerror}")
    file = folder / "prompt.md"
    keeps_file = False
    try:
        problem = await _run([*command, str(file)], env)
        answer = EditorFailed(problem) if problem else await to_thread.run_sync(saved_text, file)
        keeps_file = isinstance(answer, _Unreadable)
    except anyio.get_cancelled_exc_class():
        if keeps_file := _has_other(text, file):
            kept(file)
        raise
    finally:
        if not keeps_file:
            with suppress(OSError):
                remove_tree(folder)
    return answer


def editor_command(env: Mapping[str, str]) -> list[str] | EditorFailed:
    """Return the program and its arguments, or what to do about there being none."""
    for variable in ("VISUAL", "EDITOR"):
        if chosen := env.get(variable, "").strip():
            return _divided(variable, chosen, env)
    for name in _FALLBACKS:
        if found := shutil.which(name, path=env.get("PATH")):
            return [found]
    return EditorFailed("no editor was found; set EDITOR to one")


def _divided(variable: str, chosen: str, env: Mapping[str, str]) -> list[str] | EditorFailed:
    try:
        words = shlex.split(chosen)
    except ValueError as exc:
        return EditorFailed(f"{variable} cannot be read as a command ({exc}): {chosen}")
    found = shutil.which(os.path.expanduser(words[0]), path=env.get("PATH")) if words else None  # noqa: PTH111 - a word
    if found is None:
        return EditorFailed(f"the editor that {variable} names was not found: {chosen}")
    return [found, *words[1:]]


class _Unreadable(EditorFailed):
    """What the user wrote is in the file and nowhere else."""


def _written_down(text: str) -> Path:
    """Return a private folder with the text in it; editors put their own files beside it."""
    folder = Path(tempfile.mkdtemp(prefix="panpan-prompt-"))
    try:
        fd = os.open(folder / "prompt.md", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace", newline="") as file:
            file.write(text)
    except OSError:
        with suppress(OSError):
            remove_tree(folder)
        raise
    return folder


async def _run(argv: list[str], env: Mapping[str, str]) -> str:
    """Run the editor and return what went wrong."""
    name = Path(argv[0]).name
    try:
        exit_code = await run_in_foreground(argv, env)
    except OSError as exc:
        return f"{name} cannot be started: {exc.strerror}; the text is as it was"
    return f"{name} ended with exit code {exit_code}, so the text is as it was" if exit_code else ""


def _has_other(text: str, file: Path) -> bool:
    """Return whether a file holds something else than `text`."""
    try:
        return file.read_bytes() != text.encode(errors="replace")
    except OSError:
        return False


def saved_text(file: Path) -> str | EditorFailed:
    """Return what stands in a file that an editor saved, as it can be typed."""
    try:
        text = read_regular_file(file, max_bytes=MAX_BYTES, follow_symlinks=True).decode("utf-8-sig")
    except ToolError as exc:
        failed = _Unreadable if file.exists() else EditorFailed
        return failed(f"what the editor saved cannot be taken: {exc}")
    except UnicodeDecodeError:
        return _Unreadable(f"what the editor saved is not UTF-8; it is in {file}")
    return without_controls(text).removesuffix("\n")
