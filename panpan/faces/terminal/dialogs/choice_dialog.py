"""Base of dialogs that ask for a yes or a no."""

from abc import abstractmethod
from collections.abc import Callable, Container, Sequence
from typing import Generic, TypeVar

from panpan.faces.terminal.dialogs.dialog import QUIET_S, Answer, Dialog, IdleTimer, LineEditor, Page
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.types.dataclass import dataclass

MeaningT = TypeVar("MeaningT", bound=str)

UNREAD = "You haven't seen all of it. Press again to allow it anyway, or Ctrl+O to read on."
"""Warning at a yes before all rows have been on the screen."""
TELL = "tell"
"""Meaning of the choice to type words for the model."""
MARK_CELLS = 5
"""Cells before a choice's further rows; its first row also leaves as many cells free."""


@dataclass(frozen=True, slots=True)
class Choice(Generic[MeaningT]):
    """One answer."""

    number: int
    """Number, from 1; it does not change if other choices are not offered."""
    meaning: MeaningT
    key: str
    text: str
    short: str
    """Shorter label, for several choices in one row."""

    @property
    def said(self) -> str:
        """Label without the key, for lines such as "y = yes"."""
        text = self.text.removesuffix(f" ({self.key})")
        return f"{text[:1].lower()}{text[1:]}"

    def is_meant_by(self, key: str) -> bool:
        """Return True if a key chooses this."""
        return key.lower() == self.key or key == str(self.number)

    def rows(self, fill: Callable[[str, int], list[str]], width: int, theme: Theme, *, is_selected: bool) -> list[str]:
        """Return the rows of the choice, wrapped by `fill`; `width` is 7 cells or more."""
        first, *more = fill(f"{self.number}. {self.text}", width - MARK_CELLS)
        rows = [f"{'❯' if is_selected else ' '} {first}", *(" " * MARK_CELLS + row for row in more)]
        return [theme.paint("accent", row) for row in rows] if is_selected else rows


class ChoiceDialog(Dialog[Answer], Generic[Answer, MeaningT]):
    """Asks for a yes or a no about the rows that it shows. Only a deliberate key says yes.

    Unless a subclass selects a choice, Enter alone answers nothing, and a paste never answers. If some rows have not
    been on the screen, the first "yes" shows a warning. Only the next one counts, after a moment to read it.
    """

    needs_selection: Container[MeaningT] = ()
    """Choices that a key only selects; a second key confirms them."""

    def __init__(self, choices: Sequence[Choice[MeaningT]], clock: Callable[[], float]) -> None:
        super().__init__()
        self._choices = choices
        self._offered = choices
        """Choices that were drawn last; keys of other choices do nothing."""
        self._selected: MeaningT | None = None
        self._is_telling = False
        """True while words for the model are typed."""
        self._words = LineEditor()
        self._page = Page()
        self._warned_for: MeaningT | None = None
        self._warning_quiet = IdleTimer(clock)

    @abstractmethod
    def _choose(self, meaning: MeaningT) -> None: ...

    @abstractmethod
    def _refuse(self, words: str) -> None: ...

    @property
    def escape_ends_turn(self) -> bool:
        """True unless the user types words for the model; Esc then goes back to the choices."""
        return self.blocks_turn and not self._is_telling

    def was_drawn(self) -> None:
        self._page.was_drawn()
        if self._warned_for is not None:
            self._warning_quiet.begin()

    def takes(self, key: str) -> bool:
        return len(key) > 1 or self._is_telling or any(choice.is_meant_by(key) for choice in self._offered)

    def press(self, key: str) -> None:
        if self.answer is not None:
            return
        if self._is_telling:
            self._press_in_words(key)
            return
        match key:
            case "enter" if self._selected in [choice.meaning for choice in self._offered]:
                self._choose(self._selected)
                return
            case "escape" | "c-c":
                self._refuse("")
            case "up" | "s-tab" | "down" | "tab":
                self._select_next(-1 if key in ("up", "s-tab") else 1)
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                meant = next((choice.meaning for choice in self._offered if choice.is_meant_by(key)), None)
                if meant in self.needs_selection and self._selected != meant:
                    self._selected = meant
                elif meant is not None:
                    self._choose(meant)
                    return
        self._warned_for = None

    def paste(self, text: str) -> bool:
        if self._is_telling:
            self._words.insert(text)
        return self._is_telling

    def take_line(self, said: str) -> str:
        key = {"yes": "y", "no": "n"}.get(said.lower(), said.lower())
        meant = next((choice.meaning for choice in self._choices if choice.key == key), None)
        if said and (meant is None or meant == TELL):
            self._refuse("" if key == "n" else said)
        elif meant is not None:
            self._choose(meant)
        return ""

    def _lines_of(self, head: Sequence[str], body: Sequence[str], hint: str) -> list[str]:
        """Return the question, all its rows, and each answer with its key."""
        self._page.note_all_seen()
        answers = (f"{choice.key} = {choice.said}" for choice in self._choices if choice.meaning != TELL)
        return [*head, *(f"  {row}" for row in (*body, *answers, hint))]

    def _press_in_words(self, key: str) -> None:
        match key:
            case "enter":
                self._refuse(self._words.text.strip())
            case "escape" | "c-c":
                self._is_telling = False  # the typed words stay
            case "pagedown" | "pageup":
                self._page.turn(key)
            case _:
                self._words.press(key)

    def _select_next(self, step: int) -> None:
        offered = [choice.meaning for choice in self._offered]
        if self._selected in offered:
            self._selected = offered[(offered.index(self._selected) + step) % len(offered)]
        else:
            self._selected = offered[0 if step > 0 else -1]

    def _tell(self) -> None:
        self._is_telling, self._warned_for = True, None

    def _allow(self, meaning: MeaningT, answer: Answer) -> None:
        """Take an answer, unless the user has to be warned about rows that have not been on the screen."""
        if self._page.was_all_seen or (self._warned_for == meaning and self._warning_quiet.has_lasted(QUIET_S)):
            self.answer = answer
        elif self._warned_for != meaning:
            self._warned_for = meaning
            self._warning_quiet.end()
        else:  # nobody can have read the warning yet
            self._warning_quiet.restart()

    def _shown_rows(self, rows: Sequence[str], size: int, width: int, theme: Theme, *, is_folded: bool) -> list[str]:
        """Return the `size` rows that are shown, and a note if there are more."""
        shown = [f"  {row}" for row in self._page.of(rows, size)]
        note = cut(f"  {self._page.note(is_folded=is_folded)}", width)
        return [*shown, theme.paint("warn", note)] if self._page.is_cut else shown
