"""The REPL of the installed command on a terminal, with what a person at it does and sees."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.e2e.conftest import COMMAND, Panpan
from tests.terminal_emulator import Screen, Terminal
from tests.terminal_emulator.keys import ENTER, TAB

MARK = "❯"
"""Stands before the input."""
INSTALLED = (str(COMMAND),)
"""The installed command, which imports everything at its start."""
INTERRUPTED = "[Interrupted]"
WAITS = "tab to answer"
"""Text of a question that takes no keys yet, since something is half typed."""
IN_A_MOMENT = "a moment …"
"""Text of a question that takes no keys yet, since it just appeared."""
LOOK_S = 0.6
"""Seconds for which a person looks at a question before answering. One takes no keys before it was on the screen for
0.4 s in which nothing was typed, so this is the shortest pause that a test may make where it cannot see that."""

_WORD = re.compile(r"w\d{4}")


class Repl(Terminal):
    """panpan on a pseudo-terminal of its own.

    Args:
        panpan: Its place and environment.
        *args: Its options.
        env: Further variables.
        program: What is run; by default panpan, from a process that has imported it where that makes no difference.
        **options: Of `Terminal`.
    """

    def __init__(
        self,
        panpan: Panpan,
        *args: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self._home = panpan.home
        environment = dict(panpan.environment()) | dict(env or {})
        prepared = None if program else panpan.prepared
        start = prepared.start_on_terminal if prepared is not None and prepared.can_start(environment) else None
        argv = [*(program or INSTALLED), *args]
        super().__init__(argv, env=environment, cwd=panpan.workspace, start=start, **options)

    def wait_for_prompt(self) -> None:
        """Wait until it takes keys."""
        self.wait_for(takes_keys)

    def submit(self, text: str) -> None:
        """Type a line, see it in the input, and press Enter."""
        self.type(text)
        self.send(ENTER)

    def type(self, text: str) -> None:
        """Type at the end of what is in the input, and wait until it can be seen there."""
        self.send(text)
        self.wait_for(ends_input(text))

    def answer(self, question: str, key: str) -> None:
        """Wait for a question, read it, and press a key."""
        self.wait_for(question)
        self.turn_to_question(question)
        self.send(key)

    def turn_to_question(self, text: str) -> None:
        """Look at the question that is on the screen as long as a person does, and leave what is half typed for it.

        Args:
            text: Of the question, to tell it from a screen that is just being drawn.
        """
        if not self.read(_is_new):
            time.sleep(LOOK_S)  # not to wait for something: what is tested is that a key after a look counts
        self.wait_for(lambda screen: _takes_answers(screen, text))
        if self.read(_waits):
            self.send(TAB)
            self.wait_for(lambda screen: not _waits(screen))

    def turn(self, prompt: str, answer: str) -> None:
        """Say something, and wait for the answer and the end of the turn."""
        self.submit(prompt)
        self.wait_for(answer)
        self.wait_for(lambda screen: takes_keys(screen) and not works(screen))

    def children(self) -> list[str]:
        """Return the command lines of what it started and still runs, without its watchdog."""
        return [command for command in super().children() if "panpan-watchdog" not in command]

    def crash_reports(self) -> list[str]:
        """Return what was written about errors that nobody expected."""
        return [path.read_text() for path in self._home.glob("crashes/*")]

    def leave(self) -> int:
        """Leave as one does, and return the exit code."""
        self.wait_for_prompt()
        self.submit("/exit")
        return self.wait()


def _waits(screen: Screen) -> bool:
    """True if a question waits for something half typed."""
    return WAITS in "\n".join(screen.visible)


def _takes_answers(screen: Screen, question: str) -> bool:
    """True if a question can be answered; the cursor is hidden while it is drawn."""
    return screen.is_cursor_visible and question in "\n".join(screen.visible) and not _is_new(screen)


def _is_new(screen: Screen) -> bool:
    """True if a question takes keys in a moment."""
    return IN_A_MOMENT in "\n".join(screen.visible)


def takes_keys(screen: Screen) -> bool:
    """True if the cursor stands in an empty input."""
    return screen.has_bracketed_paste and screen.is_cursor_visible and screen.before_cursor.rstrip() == MARK


def works(screen: Screen) -> bool:
    """True if a turn runs."""
    return any("esc interrupts" in row for row in screen.visible)


def was_given_back(text: str) -> Callable[[Screen], bool]:
    """Return the condition that a line stands in the input again, and the caret in an empty line below it."""

    def is_above_the_caret(screen: Screen) -> bool:
        above = screen.visible[screen.cursor.y - 1]
        return screen.is_cursor_visible and above.endswith(text) and screen.before_cursor == "  "

    return is_above_the_caret


def ends_input(text: str) -> Callable[[Screen], bool]:
    """Return the condition that the caret stands in the input behind `text`, of which only the end is looked for."""
    end = text.rstrip()[-15:]

    def stands_behind_what_was_typed(screen: Screen) -> bool:
        return screen.before_cursor.rstrip().endswith(end) and screen.is_cursor_visible

    stands_behind_what_was_typed.__name__ = f"the caret behind {end!r}"
    return stands_behind_what_was_typed


def numbered(count: int, *, a_paragraph: int = 0) -> str:
    """Return `count` different words of five characters, w0000 to w9999, as a paragraph or several."""
    words = [f"w{number:04}" for number in range(count)]
    if not a_paragraph:
        return " ".join(words)
    parts = [" ".join(words[start : start + a_paragraph]) for start in range(0, count, a_paragraph)]
    return "\n\n".join(parts)


def numbered_words(text: str) -> list[str]:
    """Return the words of `numbered` that stand in a text, in their order there."""
    return _WORD.findall(text)


def texts_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message as it was sent to the model, without reminders."""
    content = message["content"]
    if isinstance(content, str):
        return content
    texts = [block["text"] for block in content if block["type"] == "text"]
    return "\n".join(text for text in texts if not text.startswith("<system-reminder>"))
