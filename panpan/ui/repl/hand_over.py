"""Gives the terminal to another program: the user's editor for what he types, and his pager for what tools printed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from panpan.errors import PanpanError
from panpan.ui.repl.input.editor import EditorFailed, edit_in_editor
from panpan.ui.repl.input_box import InputBox
from panpan.ui.repl.pager import page
from panpan.ui.repl.screen import Screen


class HandOver:
    """Runs one program after the other, each with the terminal to itself; the turn goes on meanwhile.

    Args:
        screen: Leaves the terminal for a while.
        box: What is typed.
        pages: Returns the lines for the pager.
        env: The environment.
        say: Shows what went wrong.
    """

    def __init__(
        self,
        screen: Screen,
        box: InputBox,
        pages: Callable[[], Sequence[str]],
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._screen = screen
        self._box = box
        self._pages = pages
        self._env = env
        self._say = say
        self._job: Callable[[], Awaitable[None]] = self._page
        self._is_wanted = anyio.Event()

    def open_editor(self) -> None:
        """Let the user edit what is typed in his editor."""
        self._want(self._edit)

    def open_pager(self) -> None:
        """Show in the pager what tools have printed."""
        self._want(self._page)

    async def run(self) -> None:
        """Do what is wanted, until cancelled."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = anyio.Event()
            try:
                await self._job()
            except (PanpanError, OSError) as error:  # such as a full disk under the temporary files
                self._say(str(error))

    def _want(self, job: Callable[[], Awaitable[None]]) -> None:
        self._job = job
        self._is_wanted.set()

    async def _edit(self) -> None:
        before, whole = self._box.text, self._box.whole_text
        async with self._screen.handed_over():
            edited = await edit_in_editor(whole, self._env)
        if isinstance(edited, EditorFailed):
            self._say(edited.reason)
            return
        came_meanwhile = "" if self._box.text == before else self._box.text
        self._box.replace(edited)
        self._box.put(came_meanwhile)

    async def _page(self) -> None:
        lines = self._pages()
        if not lines:
            self._say("no tool has printed anything yet")
            return
        async with self._screen.handed_over():
            await page(lines, self._env)
