"""The drawing that the user saw counts while it is on the screen, and keys go where they look."""

from types import SimpleNamespace

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Never
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import DummyOutput

from panpan.faces.terminal.input.input_box import InputBox
from panpan.faces.terminal.screen.terminal_app import LastDrawing
from panpan.faces.terminal.screen.windows import Contents, DialogView, Windows


class DrawnFrame:
    """An input with a list of completions, and a dialog with a caret, drawn in a window of 80 cells."""

    def __init__(self):
        self.size = Size(rows=24, columns=80)
        self.output = SimpleNamespace(get_size=lambda: self.size)
        self.box = InputBox(lambda: "> ")
        self.seen_of_dialog = []
        self.caret = None
        contents = Contents(
            KeyBindings(),
            dialog=DialogView(lambda width: ["? pick"], lambda: self.caret, self.seen_of_dialog.append),
        )
        windows = Windows(self.output, self.box, contents)
        self.layout = windows.layout
        self.app = Application(layout=windows.layout, input=DummyInput(), output=DummyOutput())
        LastDrawing(self.app, self.output, windows)

    def draw(self):
        self.app.before_render.fire()

    def press(self):
        self.app.key_processor.before_key_press.fire()

    def see_completion(self):
        buffer = self.box.buffer
        buffer.complete_while_typing = Never()  # it would need a running application
        buffer.document = Document("@co", 3)
        buffer.complete_state = CompletionState(buffer.document, [Completion("@core.py", start_position=-3)])
        self.box.menu.rows(80)
        self.box.menu.was_drawn(is_whole=True)


def test_completion_that_is_on_the_screen_is_offered():
    one = DrawnFrame()
    one.draw()
    one.see_completion()

    one.press()

    assert one.box.menu.suggestion is not None


def test_drawing_in_a_window_of_another_size_does_not_count():
    one = DrawnFrame()
    one.draw()
    one.see_completion()
    one.size = Size(rows=24, columns=40)

    one.press()

    assert one.box.menu.suggestion is None
    assert one.seen_of_dialog == [False]


def test_key_behind_a_dialogs_answer_is_for_the_input():
    one = DrawnFrame()
    one.caret = (0, 2)
    one.draw()
    assert one.layout.current_window is not one.box.window

    one.caret = None  # as after an answer, before anything is drawn
    one.press()

    assert one.layout.current_window is one.box.window


def test_caret_that_a_drawing_moves_is_where_it_belongs():
    one = DrawnFrame()
    one.draw()

    one.caret = (0, 2)  # as the rows of the dialog say while they are drawn
    one.app.after_render.fire()

    assert one.layout.current_window is not one.box.window
