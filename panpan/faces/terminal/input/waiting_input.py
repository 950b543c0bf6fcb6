"""The input while no session is open: what is typed stays, and what is sent or asked for waits for one.

A session takes most of a second to import and open; the user need not wait for it to begin typing.
"""

from collections.abc import Callable, Sequence
from time import monotonic

from prompt_toolkit.buffer import Buffer

from panpan.faces.terminal.inbox import Sent
from panpan.faces.terminal.input.draft import Draft, PasteTooLargeError
from panpan.faces.terminal.input.keys import Actions, DraftKeys, SecondPress, key_bindings
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents
from panpan.system.text.terminal_text import clean_line

_MAX_READ_CHARS = 2_000


class WaitingInput(Actions):
    """What keys do meanwhile, and what stands around the input.

    Args:
        draft: What is typed.
        buffer: Where it is typed.
        theme: How it looks.
        leave: Ends panpan.
    """

    def __init__(self, draft: Draft, buffer: Buffer, theme: Theme, leave: Callable[[], object]) -> None:
        self._draft = draft
        self._theme = theme
        self._leave = leave
        self._sent: list[Sent] = []
        self._wanted: list[Callable[[Actions], None]] = []
        self._hint = ""
        second = SecondPress(monotonic)
        self._draft_keys = DraftKeys(draft, second, self._say)
        self.contents = Contents(
            key_bindings(self, buffer),
            queue=self._queue_rows,
            status=self._status_rows,
            key_pressed=second.key_pressed,
        )

    @property
    def sent(self) -> Sequence[str]:
        """What was sent and waits."""
        return [each.text for each in self._sent]

    def take(self, sent: Sequence[Sent]) -> None:
        """Let what one session left over wait for the next."""
        self._sent[:0] = sent

    def hand_over(self, actions: Actions, send: Callable[[Sent], None]) -> None:
        """Let a session have what was sent, and do what keys asked for."""
        sent, self._sent = self._sent, []
        wanted, self._wanted = self._wanted, []
        for each in sent:
            send(each)
        for do in wanted:
            do(actions)

    @property
    def is_busy(self) -> bool:
        """Whether anything runs."""
        return False

    @property
    def has_queued(self) -> bool:
        """Whether something was sent that can be taken back."""
        return bool(self._sent)

    @property
    def is_in_retry_pause(self) -> bool:
        """Whether a request waits to be sent again."""
        return False

    def enter(self) -> None:
        self._send(is_for_later=False)

    def enter_later(self) -> None:
        self._send(is_for_later=True)

    def _send(self, *, is_for_later: bool) -> None:
        if text := self._draft.enter():
            self._sent.append(Sent(text, is_for_later))

    def take_back(self) -> None:
        if self._sent:
            self._draft.put(self._sent.pop().text)

    def control_c(self) -> None:
        if self._draft.text:
            self._draft_keys.clear()
        elif not self.give_back():
            self._leave()

    def control_d(self) -> None:
        self._leave()

    def paste(self, text: str) -> None:
        try:
            self._draft.paste(text)
        except PasteTooLargeError as error:
            self._hint = str(error)

    def backspace(self) -> None:
        self._draft.backspace()

    def escape(self) -> None:
        if not self.give_back() and self._draft.text:
            self._draft_keys.escape()

    def give_back(self) -> bool:
        """Put what was sent back into the input, and return whether there was anything."""
        sent, self._sent = self._sent, []
        if sent:
            self._draft.give_back("\n".join(each.text for each in sent))
        return bool(sent)

    def expand(self) -> None:
        """Nothing was printed."""

    def next_mode(self) -> None:
        self._wanted.append(lambda actions: actions.next_mode())

    def edit_elsewhere(self) -> None:
        self._wanted.append(lambda actions: actions.edit_elsewhere())

    def suspend(self) -> None:
        self._wanted.append(lambda actions: actions.suspend())

    def stash(self) -> None:
        self._draft_keys.stash()

    def choose_model(self) -> None:
        self._wanted.append(lambda actions: actions.choose_model())

    def switch_thinking(self) -> None:
        self._wanted.append(lambda actions: actions.switch_thinking())

    def to_background(self) -> None:
        self._wanted.append(lambda actions: actions.to_background())

    def show_todos(self) -> None:
        self._wanted.append(lambda actions: actions.show_todos())

    def paste_picture(self) -> None:
        self._wanted.append(lambda actions: actions.paste_picture())

    def help(self) -> None:
        self._wanted.append(lambda actions: actions.help())

    def retry_now(self) -> None:
        """Nothing was tried."""

    def _say(self, hint: str) -> None:
        self._hint = hint

    def _queue_rows(self, width: int) -> Sequence[str]:
        texts = (clean_line(sent.text[:_MAX_READ_CHARS]).strip() for sent in self._sent)
        return [self._theme.paint("dim", cut(f"  ↳ {text}", width)) for text in texts]

    def _status_rows(self, width: int) -> Sequence[str]:
        if self._hint:
            return [self._theme.paint("warn", cut(f"  {self._hint}", width))]
        return [self._theme.paint("dim", cut("  opening the session …", width))]
