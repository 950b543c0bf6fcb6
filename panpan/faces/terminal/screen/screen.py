"""The screen of one session: drawn again and again around a cursor, or printed line by line.

The rule: the REPL knows a screen by this Protocol alone, so that `--plain` is the same program on another screen.
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
    from panpan.faces.terminal.background_watch import Leaving
    from panpan.faces.terminal.commands.choice_commands import ScreenLook
    from panpan.faces.terminal.prompt_queue import PromptQueue
    from panpan.faces.terminal.screen.external_program import EditorFailed

T = TypeVar("T")


class TurnShower(Protocol):
    """Shows the turns of a session."""

    @property
    def is_moving(self) -> bool:
        """True if its rows change by themselves."""
        ...

    async def show_past(self, messages: Sequence[Message]) -> None:
        """Show the last turns of a conversation that goes on, and how to see those before."""

    def begin(self, prompt: UserMessage | None) -> None:
        """A turn begins; None: the model is woken, for what was said already."""

    def show(self, event: Event) -> None:
        """Show what `event` adds."""

    async def caught_up(self) -> None:
        """Let keys be taken, and wait while more is shown than the terminal takes."""

    def note(self, text: str) -> None:
        """Show a sentence of panpan's own."""

    def fail(self, message: str) -> None:
        """The turn ended with an error."""

    def end(self) -> None:
        """The turn is over, in whatever way."""

    def keep_plan(self, text: str) -> None:
        """Show a plan that was neither approved nor sent back, so that it does not vanish with its question."""

    def is_of_turn(self, question: PermissionQuestion) -> bool:
        """Return whether the turn that runs waits for the answer, and not a subagent beside it."""
        ...


class Screen(Canvas, Protocol):
    """Shows one session, asks the user, and takes what they type."""

    @property
    def view(self) -> TurnShower: ...

    @property
    def look(self) -> "ScreenLook | None":
        """Colours and keys; None where there are only lines."""
        ...

    @property
    def room(self) -> int:
        """Rows for a dialog."""
        ...

    def echo(self, *lines: str) -> None:
        """Show what was typed, unless it stands there already."""

    async def ask(self, dialog: Dialog[T]) -> T:
        """Let the user answer, once all that was asked before is answered."""
        ...

    def question_waits(self) -> None:
        """A question begins to wait: call the user, who may be elsewhere."""

    async def read(self, *shapes: Display, from_end: bool = False) -> None:
        """Let the user read much, the end of it first where that matters more.

        Raises:
            ConfigError: There is no program for that.
        """

    async def edited(self, text: str) -> "str | EditorFailed":
        """Let the user edit a text in their editor, and return what they saved."""
        ...

    def handed_over(self) -> AbstractAsyncContextManager[None]:
        """Leave the terminal to something else for a while; what is shown meanwhile comes afterwards."""
        ...

    def hand_back(self, text: str) -> None:
        """Give the user a text to change and send again."""

    def give_back(self, text: str) -> None:
        """Give the user what they had sent and was interrupted before it was done."""

    def interrupted(self) -> bool:
        """A SIGINT came: return whether it was for what has the terminal at the moment."""
        ...

    def serving(
        self, prompts: "PromptQueue", leaving: "Leaving", first_prompt: str | None
    ) -> AbstractAsyncContextManager[None]:
        """Take what the user types, after `first_prompt`, until the block is left."""
        ...
