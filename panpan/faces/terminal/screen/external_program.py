"""Hands the terminal over to the user's editor, pager or shell."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from shutil import which
from tempfile import NamedTemporaryFile
from typing import IO

import anyio
from anyio import to_thread

from panpan.errors import ConfigError, PanpanError, ToolError
from panpan.faces.terminal.input.draft import Draft
from panpan.faces.terminal.screen.terminal_app import TerminalApp
from panpan.system.files.folder_tree import remove_tree
from panpan.system.files.read_file import read_regular_file
from panpan.system.processes.foreground import run_in_foreground
from panpan.system.text.terminal_text import clean_for_terminal, without_controls
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

# A pager passes its input on to the terminal, so it gets no escape sequences other than colours.
_COLOURS = compile_late(r"(\x1b\[[0-9;:]{0,40}m)")
"""SGR sequences as `Theme.paint` writes them, which only change the look of text."""


def pager_command(env: Mapping[str, str], begin: str = "") -> Sequence[str]:
    """Return the pager that `PAGER` names, else `less`, else `more`; less starts at a line, or with "G" at the end.

    Raises:
        ConfigError: There is no pager.
    """
    try:
        chosen = shlex.split(env.get("PAGER", ""))
    except ValueError as error:
        raise ConfigError(f"PAGER cannot be read as a command: {error}") from error
    less = ["less", "-R", *([f"+{begin}"] if begin else [])]  # with colours
    if chosen and which(chosen[0]):
        return less if chosen == ["less"] else chosen
    if which("less"):
        return less
    if which("more"):
        return ["more"]
    raise ConfigError("there is no pager; install less, or set PAGER")


async def page(lines: Iterable[str], env: Mapping[str, str], begin: Callable[[], str]) -> None:
    """Show lines until the user leaves the pager. The terminal must be handed over before.

    `begin` returns the start as for `pager_command`; it is called after all lines are read.

    Raises:
        ConfigError: There is no pager, or it could not be started.
    """
    pager_command(env)  # fails before the lines are made if there is no pager
    with NamedTemporaryFile("w", encoding="utf-8", errors="replace", prefix="panpan-", suffix=".txt") as file:
        await to_thread.run_sync(_write, file, lines)
        command = pager_command(env, begin())
        try:
            await run_in_foreground([*command, file.name], {**os.environ, **env})
        except OSError as error:
            raise ConfigError(f"the pager {command[0]} could not be started: {error.strerror}") from error


def strip_escapes(text: str) -> str:
    """Return `text` without escape sequences other than colours."""
    parts = _COLOURS.split(text)  # parts at odd indexes are colours
    return "".join(part if number % 2 else clean_for_terminal(part) for number, part in enumerate(parts))


def _write(file: IO[str], lines: Iterable[str]) -> None:
    file.writelines(f"{strip_escapes(line)}\n" for line in lines)
    file.flush()


# If the editor fails, no text is lost: the typed text stays in the input, and unusable output of the editor stays in
# its file, which is named. The editor is not run by `system/processes/process.py`, which gives a program no terminal.

MAX_BYTES = 5_000_000
_FALLBACKS = ("nano", "vi", "vim")


@dataclass(frozen=True, slots=True)
class EditorFailed:
    """Failure of the editor; the text stays as it was, and the reason is a sentence for the user."""

    reason: str


async def edit_in_editor(
    text: str, env: Mapping[str, str], kept: Callable[[Path], None] = lambda _: None
) -> str | EditorFailed:
    """Let the user edit `text` in the editor of `VISUAL`, then `EDITOR`, and return what they saved.

    `kept` gets the file with the saved text, if this is cancelled before they have left the editor.
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
    """Return the program and its arguments, or a failure that says what to do."""
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
    """Failure in which the user's text is only in the file."""


def _written_down(text: str) -> Path:
    """Return a private folder with the text in a file; editors put their own files beside it."""
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
    name = Path(argv[0]).name
    try:
        exit_code = await run_in_foreground(argv, env)
    except OSError as exc:
        return f"{name} cannot be started: {exc.strerror}; the text is unchanged"
    return f"{name} ended with exit code {exit_code}, so the text is unchanged" if exit_code else ""


def _has_other(text: str, file: Path) -> bool:
    try:
        return file.read_bytes() != text.encode(errors="replace")
    except OSError:
        return False


def saved_text(file: Path) -> str | EditorFailed:
    """Return the text that an editor saved, cleaned for the input box."""
    try:
        text = read_regular_file(file, max_bytes=MAX_BYTES, follow_symlinks=True).decode("utf-8-sig")
    except ToolError as exc:
        failed = _Unreadable if file.exists() else EditorFailed
        return failed(f"panpan cannot use the editor's saved text: {exc}")
    except UnicodeDecodeError:
        return _Unreadable(f"the editor's saved text is not UTF-8; it is in {file}")
    return without_controls(text).removesuffix("\n")


def _tell_of(file: Path, app: TerminalApp) -> None:
    app.show(f"the editor's saved text is in {file}")


class _LastPrompt:
    """Number of the line at which the last turn begins, as far as lines were read."""

    def __init__(self) -> None:
        self.line = 1
        self._count = 0

    def note(self) -> None:
        self.line = self._count + 1

    def counted(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            self._count += 1
            yield line


class ExternalProgram:
    """Runs external programs one after the other, each with the terminal to itself; the turn goes on meanwhile."""

    def __init__(
        self,
        draft: Draft,
        transcript: Callable[[Callable[[], None]], Iterable[str]],
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._draft = draft
        self._transcript = transcript
        self._env = env
        self._say = say
        self._job: Callable[[TerminalApp], Awaitable[None]] = self._page
        self._is_wanted = anyio.Event()

    def open_editor(self) -> None:
        self._want(self._edit)

    def open_pager(self) -> None:
        self._want(self._page)

    def suspend(self) -> None:
        """Give the terminal back to the shell until it continues panpan."""
        self._want(self._suspend)

    async def run(self, app: TerminalApp) -> None:
        """Run requested programs until cancelled; `app` hands the terminal over to them."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            try:
                await self._job(app)
            except (PanpanError, OSError) as error:  # such as a full disk for temporary files
                self._say(str(error))

    def _want(self, job: Callable[[TerminalApp], Awaitable[None]]) -> None:
        self._job = job
        self._is_wanted.set()

    async def edited(self, text: str, app: TerminalApp) -> str | EditorFailed:
        """Let the user edit a text, such as a plan, and return what they saved."""
        async with app.released():
            return await edit_in_editor(text, self._env, lambda file: _tell_of(file, app))

    async def read(self, lines: Sequence[str], app: TerminalApp, *, from_end: bool) -> None:
        """Show lines in the pager, the end first if wanted.

        Raises:
            ConfigError: There is no pager, or it could not be started.
        """
        async with app.released():
            await page(lines, self._env, lambda: "G" if from_end else "")

    async def _edit(self, app: TerminalApp) -> None:
        before, unfolded = self._draft.text, self._draft.unfolded

        def keep(file: Path) -> None:
            """Keep the saved text if panpan ends: in its file, and as typed text."""
            _tell_of(file, app)
            if isinstance(saved := saved_text(file), str):
                self._draft.replace(saved)

        async with app.released():
            edited = await edit_in_editor(unfolded, self._env, keep)
        if isinstance(edited, EditorFailed):
            self._say(edited.reason)
            return
        came_meanwhile = "" if self._draft.text == before else self._draft.text
        self._draft.replace(edited)
        self._draft.put(came_meanwhile)

    async def _suspend(self, app: TerminalApp) -> None:
        if not await app.suspend():
            self._say("there is no shell to go back to")

    async def _page(self, app: TerminalApp) -> None:
        place = _LastPrompt()
        lines = place.counted(self._transcript(place.note))
        if (first := next(lines, None)) is None:
            self._say("there are no messages yet")
            return
        async with app.released():
            await page(chain([first], lines), self._env, lambda: str(place.line) if place.line > 1 else "")
