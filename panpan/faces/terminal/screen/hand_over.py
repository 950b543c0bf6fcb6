"""Gives the terminal away for a while: to the user's editor for what he types, to his pager, to his shell."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

import anyio

from panpan.errors import PanpanError
from panpan.faces.terminal.input.draft import Draft
from panpan.faces.terminal.input.editor import EditorFailed, edit_in_editor, saved_text
from panpan.faces.terminal.screen.pager import page
from panpan.faces.terminal.screen.screen import Screen


class HandOver:
    """Runs one program after the other, each with the terminal to itself; the turn goes on meanwhile.

    Args:
        draft: What is typed.
        transcript: Returns the lines for the pager.
        env: The environment.
        say: Shows what went wrong.
    """

    def __init__(
        self,
        draft: Draft,
        transcript: Callable[[], Iterable[str]],
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._draft = draft
        self._transcript = transcript
        self._env = env
        self._say = say
        self._job: Callable[[Screen], Awaitable[None]] = self._page
        self._is_wanted = anyio.Event()

    def open_editor(self) -> None:
        """Let the user edit what is typed in his editor."""
        self._want(self._edit)

    def open_pager(self) -> None:
        """Show the whole conversation in the pager."""
        self._want(self._page)

    def suspend(self) -> None:
        """Give the terminal back to the shell, until that lets panpan go on."""
        self._want(self._suspend)

    async def run(self, screen: Screen) -> None:
        """Do what is wanted, until cancelled.

        Args:
            screen: Leaves the terminal for a while.
        """
        while True:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            try:
                await self._job(screen)
            except (PanpanError, OSError) as error:  # such as a full disk under the temporary files
                self._say(str(error))

    def _want(self, job: Callable[[Screen], Awaitable[None]]) -> None:
        self._job = job
        self._is_wanted.set()

    async def edited(self, text: str, screen: Screen) -> str | EditorFailed:
        """Let the user edit a text, such as a plan, in his editor, and return what he saved."""
        async with screen.handed_over():
            return await edit_in_editor(
                text, self._env, lambda file: screen.show(f"what the editor had saved is in {file}")
            )

    async def read(self, lines: Sequence[str], screen: Screen) -> None:
        """Show lines in the pager.

        Raises:
            ConfigError: There is none, or it could not be started.
        """
        async with screen.handed_over():
            await page(lines, self._env)

    async def _edit(self, screen: Screen) -> None:
        before, unfolded = self._draft.text, self._draft.unfolded

        def keep(file: Path) -> None:
            """Keep what the editor had saved where panpan ends: in its file, and as what is typed."""
            screen.show(f"what the editor had saved is in {file}")
            if isinstance(saved := saved_text(file), str):
                self._draft.replace(saved)

        async with screen.handed_over():
            edited = await edit_in_editor(unfolded, self._env, keep)
        if isinstance(edited, EditorFailed):
            self._say(edited.reason)
            return
        came_meanwhile = "" if self._draft.text == before else self._draft.text
        self._draft.replace(edited)
        self._draft.put(came_meanwhile)

    async def _suspend(self, screen: Screen) -> None:
        if not await screen.suspend():
            self._say("there is no shell to go back to")

    async def _page(self, screen: Screen) -> None:
        lines = iter(self._transcript())
        if (first := next(lines, None)) is None:
            self._say("nothing was said yet")
            return
        async with screen.handed_over():
            await page(chain([first], lines), self._env)
