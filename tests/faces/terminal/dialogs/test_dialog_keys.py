"""Keys while something is asked: they answer, or are typed, or are held where they came too early; none is lost."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput

from panpan.faces.terminal.dialogs.dialog import QUIET_S
from panpan.faces.terminal.dialogs.dialog_queue import DialogKeys, DialogQueue
from panpan.faces.terminal.dialogs.permission import PermissionDialog
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.faces.terminal.dialogs.drawn import THEMES, Clock

NAMES = {"up": Keys.Up, "escape": Keys.Escape, "enter": Keys.ControlM, "tab": Keys.ControlI, "backspace": Keys.ControlH}


class Asked:
    """A question on a screen, an input, and a keyboard."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.buffer = Buffer()
        self.dialogs = DialogQueue(
            lambda: None, self.clock, lambda: bool(self.buffer.text), return_prompt=self.buffer.insert_text
        )
        question = PermissionQuestion("1", "Bash", {"command": "make"}, "make", "it may change things")
        self.is_of_turn = True
        self.dialog = PermissionDialog(question, (), clock=self.clock, ends_turn=lambda: self.is_of_turn)
        self.interrupts = 0
        bound = KeyBindings()
        insert = self.buffer.insert_text
        keys = DialogKeys(self.dialogs, self._interrupt, insert, insert, lambda: insert("taken back"))
        keys.bind(bound)
        self.app: Application[None] = Application(
            layout=Layout(Window(BufferControl(self.buffer))),
            key_bindings=bound,
            input=DummyInput(),
            output=DummyOutput(),
        )
        self.app.key_processor.before_key_press += lambda _: self._key_pressed()

    def _interrupt(self) -> None:
        self.interrupts += 1

    def _key_pressed(self) -> None:
        if not self.dialogs.takes_keys:
            self.dialogs.typed_elsewhere()

    def draw(self) -> None:
        self.dialogs.lines(80, 20, THEMES[0])
        self.dialogs.was_drawn(True)

    def look(self) -> None:
        """Let the time pass after which keys count."""
        self.clock.now_s += QUIET_S

    def press(self, *keys: str) -> None:
        with set_app(self.app):
            for key in keys:
                self.app.key_processor.feed(KeyPress(NAMES.get(key, key)))
                self.app.key_processor.process_keys()

    def paste(self, text: str) -> None:
        with set_app(self.app):
            self.app.key_processor.feed(KeyPress(Keys.BracketedPaste, text))
            self.app.key_processor.process_keys()


@asynccontextmanager
async def asked() -> AsyncIterator[Asked]:
    """Put the question, show it, and withdraw it at the end where it is not answered."""
    one = Asked()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.dialogs.ask, one.dialog)
        await anyio.wait_all_tasks_blocked()
        one.draw()
        yield one
        tasks.cancel_scope.cancel()


async def test_letter_after_a_look_answers() -> None:
    async with asked() as one:
        one.look()
        one.press("y")
        assert one.dialog.answer == PermissionAnswer(is_allowed=True)
        assert one.buffer.text == ""


async def test_early_letter_is_not_typed_and_answers_when_repeated() -> None:
    async with asked() as one:
        one.press("y")
        assert (one.dialog.answer, one.buffer.text) == (None, "")
        one.look()
        one.press("y")
        assert one.dialog.answer == PermissionAnswer(is_allowed=True)
        assert one.buffer.text == ""


async def test_held_letter_is_removed_by_tab_and_backspace() -> None:
    async with asked() as one:
        for key in ("tab", "backspace"):
            one.press("y")
            one.look()
            one.press(key)
            assert not one.dialogs.early.letter
            one.dialogs.typed_elsewhere()
        assert (one.dialog.answer, one.buffer.text) == (None, "")


async def test_enter_behind_a_held_letter_sends_nothing() -> None:
    async with asked() as one:
        one.press("y", "enter")
        assert one.dialog.answer is None
        assert one.buffer.text.strip() == ""
        assert one.dialogs.early.letter


@pytest.mark.parametrize("text", ["the", "yes but", "no, wait", "11 tests", "a b c", "you"])
async def test_text_that_is_begun_as_the_question_comes_is_whole(text: str) -> None:
    async with asked() as one:
        one.press(*text)
        assert one.buffer.text == text
        one.look()
        one.press("y")
        assert one.dialog.answer is None
        assert one.buffer.text.endswith("y"), "which goes where the text stands"


async def test_slowly_typed_word_is_whole() -> None:
    async with asked() as one:
        for letter in "they":
            one.press(letter)
            one.look()
        assert one.dialog.answer is None
        assert one.buffer.text == "they"


@pytest.mark.parametrize("waits", [False, True])
async def test_paste_comes_behind_the_letter_that_was_held(waits: bool) -> None:
    async with asked() as one:
        one.press("y")
        if waits:
            one.look()
        one.paste("es, all of it")
        assert one.buffer.text == "yes, all of it"
        assert one.dialog.answer is None


async def test_letter_that_is_no_answer_begins_a_text_at_once() -> None:
    async with asked() as one:
        one.press("x")
        assert one.buffer.text == "x"
        one.look()
        one.press("tab", "y")
        assert one.dialog.answer is None, "after Tab there is a moment for looking again"


async def test_waiting_prompt_is_taken_back_beside_a_question() -> None:
    async with asked() as there:
        there.look()
        there.press("escape", "up")

        assert (there.buffer.text, there.dialog.answer, there.interrupts) == ("taken back", None, 0)


@pytest.mark.parametrize("key", ["escape", Keys.ControlC])
@pytest.mark.parametrize("is_of_turn", [True, False])
async def test_leaving_a_background_subagents_question_refuses_it(key: str, is_of_turn: bool) -> None:
    async with asked() as one:
        one.is_of_turn = is_of_turn
        one.look()
        one.press(*[key] * (2 if key == "escape" else 1))
        assert one.dialog.answer == PermissionAnswer(is_allowed=False)
        assert one.interrupts == is_of_turn
