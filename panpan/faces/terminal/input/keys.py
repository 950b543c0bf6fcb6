"""What keys do. Each does one thing; what it is, the REPL decides."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import (
    Always,
    Condition,
    Filter,
    completion_is_selected,
    has_completions,
    has_selection,
    is_searching,
    vi_insert_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.search import accept_search
from prompt_toolkit.keys import Keys

from panpan.faces.terminal.inbox import Sent
from panpan.faces.terminal.input.draft import Draft, PasteTooLargeError
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents
from panpan.system.text.terminal_text import clean_line

_ALWAYS = Always()


class Actions(Protocol):
    """What keys can make happen."""

    def enter(self) -> None:
        """Send what is typed; to the model that works, too."""

    def enter_later(self) -> None:
        """Send what is typed when the turn is over."""

    def take_back(self) -> None:
        """Put what was sent last, and not delivered, back into the input."""

    def escape(self) -> None:
        """Interrupt what runs, else clear the input."""

    def control_c(self) -> None:
        """Clear the input, else interrupt, else leave."""

    def control_d(self) -> None:
        """Leave, where the input is empty."""

    def expand(self) -> None:
        """Show more of what tools print, or less."""

    def next_mode(self) -> None:
        """Change the permission mode."""

    def edit_elsewhere(self) -> None:
        """Open the input in the user's editor."""

    def suspend(self) -> None:
        """Stop panpan, until the shell lets it go on."""

    def stash(self) -> None:
        """Put aside what is typed; where nothing is, bring back what was put aside."""

    def choose_model(self) -> None:
        """Let the user choose the model."""

    def switch_thinking(self) -> None:
        """Let the model think first, or no more."""

    def to_background(self) -> None:
        """Let what runs go on in the background; where nothing runs that can, show what is there."""

    def show_todos(self) -> None:
        """Show what the model wants to do, or hide it."""

    def paste_picture(self) -> None:
        """Put a mention of the picture in the clipboard into the input."""

    def paste(self, text: str) -> None:
        """Put pasted text into the input."""

    def backspace(self) -> None:
        """Delete what stands before the caret."""

    def retry_now(self) -> None:
        """End the pause before the next try."""

    def help(self) -> None:
        """Tell the keys."""

    @property
    def is_busy(self) -> bool:
        """Whether anything runs."""
        ...

    @property
    def has_queued(self) -> bool:
        """Whether something was sent that can be taken back."""
        ...

    @property
    def is_in_retry_pause(self) -> bool:
        """Whether a request waits to be sent again."""
        ...


class KeysOfDialogs(Protocol):
    """What keys do while a dialog is open."""

    are_taken: Filter
    """Whether a key that comes now is for a dialog."""

    def bind(self, keys: KeyBindings) -> None:
        """Let a dialog have every key."""


def key_bindings(actions: Actions, buffer: Buffer, dialogs: KeysOfDialogs | None = None) -> KeyBindings:
    """Return what the keys do, beside prompt_toolkit's own for editing.

    Args:
        actions: What they make happen.
        buffer: What is typed.
        dialogs: Has them while a dialog is open; None: there are no dialogs.
    """
    keys = KeyBindings()
    typing = ~is_searching
    if dialogs is not None:
        dialogs.bind(keys)
        typing &= ~dialogs.are_taken
    empty = Condition(lambda: not buffer.text)
    busy = Condition(lambda: actions.is_busy)

    def bind(*sequence: Keys | str, when: Filter = _ALWAYS, to: str, is_eager: bool = False) -> None:
        action = getattr(actions, to)
        keys.add(*sequence, filter=typing & when, eager=is_eager)(lambda _: action())

    bind("enter", to="enter")
    keys.add("tab", filter=typing)(_complete)
    keys.add("down", filter=typing & has_completions & ~completion_is_selected)(_select_second)
    keys.add("c-j", filter=typing)(lambda event: event.current_buffer.newline())
    bind("escape", "enter", to="enter_later")
    bind("escape", "up", to="take_back")
    bind("up", when=empty & Condition(lambda: actions.has_queued), to="take_back")
    is_escape_ours = ~vi_insert_mode | busy & empty
    bind("escape", when=is_escape_ours, to="escape")
    keys.add("escape", Keys.Any, filter=typing & is_escape_ours)(_nothing)
    for letter in "pP":
        bind("escape", letter, to="choose_model")
    for letter in "tT":
        bind("escape", letter, to="switch_thinking")
    bind("escape", "c-c", to="control_c")
    bind("c-c", to="control_c")
    bind("<sigint>", to="control_c")
    bind("c-d", when=empty, to="control_d")
    bind("c-o", to="expand", is_eager=True)
    bind("s-tab", to="next_mode")
    bind("c-g", to="edit_elsewhere")
    bind("c-z", to="suspend")
    bind("c-s", to="stash")
    bind("c-v", when=~vi_navigation_mode, to="paste_picture")
    bind("c-b", when=(empty | busy) & ~vi_navigation_mode, to="to_background")
    bind("c-t", when=(empty | busy) & ~vi_navigation_mode, to="show_todos")
    bind("c-h", when=~has_selection, to="backspace")
    bind("?", when=empty & ~busy, to="help")
    for letter in "rR":
        bind(letter, when=empty & Condition(lambda: actions.is_in_retry_pause), to="retry_now")
    keys.add(Keys.BracketedPaste, filter=typing)(lambda event: actions.paste(event.data))
    keys.add("c-c", filter=is_searching)(lambda event: event.app.layout.focus_last())
    keys.add("escape", filter=is_searching, eager=True)(_end_search)
    return keys


def _nothing(event: KeyPressEvent) -> None:
    """Alt with a key that means nothing is nothing: not Escape, and not the key."""


def _end_search(event: KeyPressEvent) -> None:
    """Take what was found, as prompt_toolkit does at once; but with Alt, the key belongs to the Escape."""
    if event.data:
        accept_search.call(event)
    elif event.key_processor.input_queue:
        event.key_processor.input_queue.popleft()


def _complete(event: KeyPressEvent) -> None:
    """Take the first completion, then the next; the list of one is done with."""
    buffer = event.current_buffer
    if (state := buffer.complete_state) is None:
        buffer.start_completion(select_first=True)
    elif len(state.completions) == 1:
        buffer.apply_completion(state.completions[0])
    else:
        buffer.complete_next()


def _select_second(event: KeyPressEvent) -> None:
    """Go down from the first completion, which is shown as selected while none is."""
    buffer = event.current_buffer
    if (state := buffer.complete_state) is not None:
        buffer.go_to_completion(min(1, len(state.completions) - 1))


AGAIN_S = 3.0
"""How soon the second one has to follow; as long as the hint is shown that tells of it."""


class SecondPress:
    """Tells the second of two presses from the first: nothing was pressed in between.

    Args:
        clock: Returns seconds that only ever grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._presses = 0
        """How many keys were pressed, this one included."""
        self._first: tuple[str, int, float] | None = None
        """Which key came first, at which press and when."""

    def key_pressed(self) -> None:
        """Count a key, whichever it is; called before it is handled."""
        self._presses += 1

    def is_second(self, key: str) -> bool:
        """Return whether `key`, which was just pressed, was the last one, too; if not, this is its first time."""
        before, self._first = self._first, None
        if before is not None:
            name, number, when_s = before
            if name == key and number == self._presses - 1 and self._clock() - when_s < AGAIN_S:
                return True
        self._first = key, self._presses, self._clock()
        return False


class DraftKeys:
    """Does what these keys ask for.

    Args:
        draft: What is typed.
        second: Tells Esc Esc from Esc.
        say: Shows a hint below the input for a moment; an empty one takes away what was said.
    """

    def __init__(self, draft: Draft, second: SecondPress, say: Callable[[str], None]) -> None:
        self._draft = draft
        self._second = second
        self._say = say

    def escape(self) -> None:
        """Clear the input the second time."""
        if self._second.is_second("escape"):
            self._draft.clear()
            self._say("")
        else:
            self._say("Esc again clears the input; Ctrl+S then brings it back")

    def clear(self) -> None:
        """Clear the input."""
        self._say("Ctrl+S brings back what was cleared" if self._draft.clear() else "")

    def stash(self) -> None:
        """Put aside what is typed; where nothing is, bring back what was put aside or cleared last."""
        if self._draft.clear():
            self._say("put aside; Ctrl+S in the empty input brings it back")
        else:
            self._say("" if self._draft.bring_back() else "nothing was put aside; Ctrl+S does so with what is typed")


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
