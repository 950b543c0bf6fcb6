"""State that outlives a session: the terminal, its look, and the typed text."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from panpan.config.ui_look import ThemeSetting
from panpan.faces.terminal.input.draft import Draft
from panpan.faces.terminal.input.input_box import InputBox, PromptHistory
from panpan.faces.terminal.input.keys import DeferredKeyActions
from panpan.faces.terminal.rendering.cells import say
from panpan.faces.terminal.screen.terminal_app import FrameOutput, TerminalApp
from panpan.faces.terminal.screen.theme import Theme, choose_theme
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """Colours and key bindings of the terminal."""

    theme: Theme
    setting: ThemeSetting
    """The user's choice, from which `theme` was made."""
    background: str | None = None
    """Background colour that the terminal reported when panpan started; None if it did not answer."""
    has_vi_keys: bool = False


@dataclass(slots=True)
class TerminalState:
    """The terminal on which sessions are shown, one after the other."""

    env: Mapping[str, str]
    output: FrameOutput
    app: TerminalApp
    box: InputBox
    draft: Draft
    """Text in the input box."""
    history: PromptHistory
    """Sent texts of this run and of earlier ones."""
    waiting: DeferredKeyActions
    """Behaviour of the input while no session is open."""
    look: Look
    _not_sent: list[str] = field(default_factory=list)
    """Texts that were sent in earlier sessions and not delivered."""

    @property
    def theme(self) -> Theme:
        return self.look.theme

    @property
    def theme_setting(self) -> ThemeSetting:
        """Theme that the user chose, which may be to follow the terminal."""
        return self.look.setting

    @property
    def width(self) -> int:
        return self.app.width

    def show(self, *lines: str) -> None:
        self.app.show(*lines)

    def send(self, sequence: bytes) -> None:
        """Send the terminal a sequence that leaves its contents as they are."""
        self.app.send(sequence)

    def warn(self, text: str) -> None:
        say(self, text, "warn")

    def take_back(self, not_sent: Iterable[str]) -> None:
        """Take texts that were sent and not delivered; they are reported at the end."""
        self._not_sent += not_sent

    def keep_typed(self) -> None:
        """Save undelivered and unsent texts in the history, and tell the user."""
        not_sent = [*self._not_sent, *self.waiting.sent]
        typed = [text] if (text := self.draft.unfolded).strip() else []
        for text in (*not_sent, *typed):
            if text not in self.history.get_strings():  # most sent texts are there already
                self.history.append_string(text)
        if not_sent:
            count, them = ("1 message was", "it") if len(not_sent) == 1 else (f"{len(not_sent)} messages were", "them")
            self.warn(f"{count} not sent: press Up in the next session to get {them} back")
        if typed:
            self.warn("panpan keeps what you typed; press Up in the next session to get it back")

    def use_theme(self, setting: ThemeSetting) -> None:
        """Show everything from now on in another theme."""
        theme = choose_theme(setting, self.env, self.look.background)
        self.look = replace(self.look, theme=theme, setting=setting)
        self.app.use_theme(theme)

    def toggle_vim(self) -> bool:
        """Switch the vi keys on or off, and return True if they are now on."""
        self.look = replace(self.look, has_vi_keys=not self.look.has_vi_keys)
        self.app.use_vi_keys(is_on=self.look.has_vi_keys)
        return self.look.has_vi_keys
