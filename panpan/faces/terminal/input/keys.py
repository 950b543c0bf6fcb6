"""Key bindings, and the actions of keys while no session is open."""

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

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

from panpan.faces.terminal.input.draft import Draft, PasteTooLargeError
from panpan.faces.terminal.rendering.cells import cut
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.screen.windows import Contents
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.types.messages import UserMessage

_ALWAYS = Always()
KEYS_HELP = "/help keys"
"""Command that `?` sends."""


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """A sent text."""

    text: str
    is_for_later: bool = False
    """True if it waits until the turn is over."""
    message: "UserMessage | None" = None
    """Message that a command has made from it; None if it was typed as it is."""


class Actions(Protocol):
    """Actions of keys."""

    def enter(self) -> None: ...  # sends the text, to the running turn if there is one
    def enter_later(self) -> None: ...  # sends the text for after the turn
    def take_back(self) -> None: ...  # takes back the last undelivered message
    def escape(self) -> None: ...  # stops the running work, else clears the input
    def control_c(self) -> None: ...  # clears the input, else stops the running work, else leaves
    def control_d(self) -> None: ...
    def expand(self) -> None: ...
    def next_mode(self) -> None: ...
    def edit_elsewhere(self) -> None: ...
    def suspend(self) -> None: ...
    def stash(self) -> None: ...
    def choose_model(self) -> None: ...
    def switch_thinking(self) -> None: ...
    def to_background(self) -> None: ...
    def show_todos(self) -> None: ...
    def paste_picture(self) -> None: ...
    def paste(self, text: str) -> None: ...
    def backspace(self) -> None: ...
    def retry_now(self) -> None: ...
    def help(self) -> None: ...

    @property
    def is_busy(self) -> bool: ...
    @property
    def has_queued(self) -> bool: ...  # messages that can be taken back
    @property
    def is_in_retry_pause(self) -> bool: ...


class KeysOfDialogs(Protocol):
    """Keys while a dialog is open."""

    are_taken: Filter
    """True if the next key is for a dialog."""

    def bind(self, keys: KeyBindings) -> None: ...


def key_bindings(actions: Actions, buffer: Buffer, dialogs: KeysOfDialogs | None = None) -> KeyBindings:
    """Return our bindings beside prompt_toolkit's for editing; an open dialog takes all keys."""
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
    """Ignore Alt with an unbound key: it is neither Escape nor the key."""


def _end_search(event: KeyPressEvent) -> None:
    """Accept the found text at Escape, as prompt_toolkit does, but ignore Alt with a key."""
    if event.data:
        accept_search.call(event)
    elif event.key_processor.input_queue:
        event.key_processor.input_queue.popleft()


def _complete(event: KeyPressEvent) -> None:
    """Take the first completion, then the next; a single one closes the list."""
    buffer = event.current_buffer
    if (state := buffer.complete_state) is None:
        buffer.start_completion(select_first=True)
    elif len(state.completions) == 1:
        buffer.apply_completion(state.completions[0])
    else:
        buffer.complete_next()


def _select_second(event: KeyPressEvent) -> None:
    """Select the second completion; the first is shown as selected while none is."""
    buffer = event.current_buffer
    if (state := buffer.complete_state) is not None:
        buffer.go_to_completion(min(1, len(state.completions) - 1))


SECOND_PRESS_S = 3.0
"""Seconds within which a second press counts; its hint is shown as long."""


class SecondPress:
    """Recognizes the second of two presses of a key without another key in between.

    `clock` is a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._presses = 0
        """Number of keys so far, including the current one."""
        self._first: tuple[str, int, float] | None = None
        """Name, number and time of the first press."""

    def key_pressed(self) -> None:
        """Count a key; called for every key before it is handled."""
        self._presses += 1

    def is_second(self, key: str) -> bool:
        """Return True if `key`, just pressed, was also the key before; otherwise note this as its first press."""
        before, self._first = self._first, None
        if before is not None:
            name, number, when_s = before
            if name == key and number == self._presses - 1 and self._clock() - when_s < SECOND_PRESS_S:
                return True
        self._first = key, self._presses, self._clock()
        return False


class DraftKeys:
    """Performs the actions of keys on the draft; `say` shows a hint below the input, and "" removes it."""

    def __init__(self, draft: Draft, second: SecondPress, say: Callable[[str], None]) -> None:
        self.draft = draft
        self.second = second
        self.say = say

    def escape(self) -> None:
        """Clear the input at the second press."""
        if self.second.is_second("escape"):
            self.draft.clear()
            self.say("")
        else:
            self.say("Esc again clears the input; Ctrl+S then brings it back")

    def clear(self) -> None:
        """Clear the input."""
        self.say("Ctrl+S restores what you cleared" if self.draft.clear() else "")

    def stash(self) -> None:
        """Stash the typed text; in an empty input, restore the text that was stashed or cleared last."""
        if self.draft.clear():
            self.say("stashed; Ctrl+S in the empty input restores it")
        else:
            self.say("" if self.draft.bring_back() else "nothing is stashed; Ctrl+S stashes what you typed")

    def paste(self, text: str) -> None:
        """Insert pasted text at the caret, or show that it is too large."""
        try:
            self.draft.paste(text)
        except PasteTooLargeError as error:
            self.say(str(error))


# A session takes most of a second to import and open; the user can type meanwhile.

_MAX_READ_CHARS = 2_000


def _later(name: str) -> Callable[["DeferredKeyActions"], None]:
    def wait(self: "DeferredKeyActions") -> None:
        self.want(name)

    return wait


class DeferredKeyActions:
    """Actions of keys while no session is open: texts and actions wait for one; `leave` ends panpan."""

    def __init__(self, draft: Draft, buffer: Buffer, theme: Theme, leave: Callable[[], object]) -> None:
        self._draft = draft
        self._theme = theme
        self._leave = leave
        self._sent: list[SentPrompt] = []
        self._wanted: list[str] = []
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
        return [each.text for each in self._sent]

    def take(self, sent: Sequence[SentPrompt]) -> None:
        """Keep texts that a session left over for the next one."""
        self._sent[:0] = sent

    def want(self, name: str) -> None:
        """Keep one of the `Actions` for the next session."""
        self._wanted.append(name)

    def hand_over(self, actions: Actions, send: Callable[[SentPrompt], None]) -> None:
        """Give a session the sent texts, and perform the kept actions."""
        sent, self._sent = self._sent, []
        wanted, self._wanted = self._wanted, []
        for each in sent:
            send(each)
        for name in wanted:
            getattr(actions, name)()

    @property
    def is_busy(self) -> bool:
        return False

    @property
    def has_queued(self) -> bool:
        return bool(self._sent)

    @property
    def is_in_retry_pause(self) -> bool:
        return False

    def enter(self) -> None:
        self._send(is_for_later=False)

    def enter_later(self) -> None:
        self._send(is_for_later=True)

    def _send(self, *, is_for_later: bool) -> None:
        if text := self._draft.enter():
            self._sent.append(SentPrompt(text, is_for_later))

    def take_back(self) -> None:
        if self._sent:
            self._draft.put(self._sent.pop().text)

    def control_c(self) -> None:
        if self._draft.text:
            self._draft_keys.clear()
        elif not self.return_prompt():
            self._leave()

    def control_d(self) -> None:
        self._leave()

    def escape(self) -> None:
        if not self.return_prompt() and self._draft.text:
            self._draft_keys.escape()

    def stash(self) -> None:
        self._draft_keys.stash()

    def paste(self, text: str) -> None:
        self._draft_keys.paste(text)

    def backspace(self) -> None:
        self._draft.backspace()

    def return_prompt(self) -> bool:
        """Put the sent texts back into the input, and return True if there were any."""
        sent, self._sent = self._sent, []
        if sent:
            self._draft.return_prompt("\n".join(each.text for each in sent))
        return bool(sent)

    def help(self) -> None:
        self._sent.append(SentPrompt(KEYS_HELP))

    def expand(self) -> None:
        """Do nothing: nothing was printed."""

    def retry_now(self) -> None:
        """Do nothing: no request is being retried."""

    next_mode = _later("next_mode")
    edit_elsewhere = _later("edit_elsewhere")
    suspend = _later("suspend")
    choose_model = _later("choose_model")
    switch_thinking = _later("switch_thinking")
    to_background = _later("to_background")
    show_todos = _later("show_todos")
    paste_picture = _later("paste_picture")

    def _say(self, hint: str) -> None:
        self._hint = hint

    def _queue_rows(self, width: int) -> Sequence[str]:
        texts = (clean_line(sent.text[:_MAX_READ_CHARS]).strip() for sent in self._sent)
        return [self._theme.paint("dim", cut(f"  ↳ {text}", width)) for text in texts]

    def _status_rows(self, width: int) -> Sequence[str]:
        if self._hint:
            return [self._theme.paint("warn", cut(f"  {self._hint}", width))]
        return [self._theme.paint("dim", cut("  opening the session …", width))]
