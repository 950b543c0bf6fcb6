"""Protocol of a session's screen: redrawn around a cursor, or printed line by line.

The rule: the REPL only uses this Protocol, so that `--plain` is the same program on another screen.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, TypeVar

from panpan.faces.terminal.dialogs.dialog import Dialog
from panpan.faces.terminal.rendering.cells import Canvas
from panpan.types.content import Display
from panpan.types.events import Event
from panpan.types.messages import Message, UserMessage
from panpan.types.permission import PermissionQuestion

if TYPE_CHECKING:
    from panpan.faces.terminal.background_watch import ExitRequest
    from panpan.faces.terminal.commands.choice_commands import ScreenLook
    from panpan.faces.terminal.prompt_queue import PromptQueue
    from panpan.faces.terminal.screen.external_program import EditorFailed

T = TypeVar("T")


class TurnRenderer(Protocol):
    """Shows the turns of a session."""

    @property
    def is_moving(self) -> bool:
        """True if its rows change over time."""
        ...

    async def show_past(self, messages: Sequence[Message]) -> None:
        """Show the last turns of a resumed conversation, and how to see the earlier ones."""

    def begin(self, prompt: UserMessage | None) -> None:
        """Begin a turn; None: the model is woken without a prompt."""

    def prompt_came(self, prompt: UserMessage) -> None:
        """Show a prompt that another client has sent, if neither `begin` nor `show` does that."""

    def show(self, event: Event) -> None:
        """Show an event of the turn."""

    async def drain(self) -> None:
        """Let keys be handled, and wait while the terminal is behind with the output."""

    def note(self, text: str) -> None:
        """Show a sentence of panpan's own."""

    def fail(self, message: str) -> None:
        """Show the error that ended the turn."""

    def end(self) -> None:
        """End the turn, however it ended."""

    def keep_plan(self, text: str) -> None:
        """Show a plan that was neither approved nor sent back, so that it does not vanish with its question."""

    def is_of_turn(self, question: PermissionQuestion) -> bool:
        """Return True if the running turn waits for the answer, and not a subagent in the background."""
        ...


class DialogScreen(Canvas, Protocol):
    """Shows turns, and asks the user."""

    @property
    def view(self) -> TurnRenderer: ...

    @property
    def room(self) -> int:
        """Rows for a dialog."""
        ...

    async def ask(self, dialog: Dialog[T]) -> T:
        """Show a dialog after all earlier ones are answered, and return its answer."""
        ...

    def question_waits(self) -> None:
        """Notify the user, who may be elsewhere, of a question that begins to wait."""

    async def edited(self, text: str) -> "str | EditorFailed":
        """Let the user edit a text in their editor, and return what they saved."""
        ...


class Screen(DialogScreen, Protocol):
    """Shows one session, asks the user, and takes their input."""

    @property
    def look(self) -> "ScreenLook | None":
        """Colours and keys; None for a screen of lines."""
        ...

    def echo(self, *lines: str) -> None:
        """Show the typed text, unless it is on the screen already."""

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        """Show a long text, with `from_end` its end first.

        Raises:
            ConfigError: There is no pager.
        """

    def released(self) -> AbstractAsyncContextManager[None]:
        """Hand the terminal over to something else inside the block; output is shown afterwards."""
        ...

    def prefill_input(self, text: str) -> None:
        """Give the user a text to change and send again."""

    def return_prompt(self, text: str) -> None:
        """Give the user a text that they had sent and that was interrupted before it was done."""

    def interrupted(self) -> bool:
        """Handle a SIGINT: return True if it was for the program that has the terminal."""
        ...

    def serving(
        self, prompts: "PromptQueue", exit_request: "ExitRequest", first_prompt: str | None
    ) -> AbstractAsyncContextManager[None]:
        """Send `first_prompt`, and then take the user's input until the block is left."""
        ...
