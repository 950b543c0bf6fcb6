"""Commands about how the terminal looks and which keys it knows."""

from collections.abc import Sequence
from typing import Protocol, get_args, runtime_checkable

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.config.settings_writer import save_ui
from panpan.config.ui_look import ThemeSetting, look_file
from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.rendering.cells import Scrollback
from panpan.session.command import Command, Option, Terminal, say
from panpan.system.text.terminal_text import clean_line

THEMES: Sequence[ThemeSetting] = get_args(ThemeSetting)


@runtime_checkable
class Screen(Terminal, Scrollback, Protocol):
    """A terminal that commands run in and that has a screen, with a look and keys."""

    @property
    def theme_setting(self) -> ThemeSetting:
        """Theme that the user chose, which may be to follow the terminal."""
        ...

    def use_theme(self, setting: ThemeSetting) -> None:
        """Show everything from now on in another theme."""
        ...

    def toggle_vim(self) -> bool:
        """Switch the vi keys on or off and return whether they are on now."""
        ...


def _screen(terminal: Terminal) -> Screen:
    """Return the terminal if it has a screen, and not only lines."""
    if not isinstance(terminal, Screen):
        raise ConfigError("this command is about the screen, and here are only lines; run panpan without --plain")
    return terminal


async def _theme(terminal: Terminal, wanted: str) -> None:
    screen = _screen(terminal)
    name = next((name for name in THEMES if name == wanted.lower()), None)
    if wanted and name is None:
        say(terminal, f"no theme is called {clean_line(wanted)}; there are {', '.join(THEMES)}", "bad")
        return
    if name is None:
        options = [_option(theme, screen) for theme in THEMES]
        picked = await terminal.choose("Which theme?", options)
        if picked is None:
            return
        name = THEMES[picked]
    screen.use_theme(name)
    found = f", which is {screen.theme.name} here" if name == "auto" else ""
    say(terminal, f"theme: {name}{found}; {await _kept(terminal, 'theme', name)}")


def _option(theme: ThemeSetting, screen: Screen) -> Option:
    is_current = theme == screen.theme_setting
    detail = f"{screen.theme.name} here" if is_current and theme == "auto" else ""
    return Option(theme, detail, is_current=is_current)


async def _vim(terminal: Terminal, rest: str) -> None:
    is_on = _screen(terminal).toggle_vim()
    keys = "vi keys are on: Esc leaves the insert mode, i enters it" if is_on else "vi keys are off"
    say(terminal, f"{keys}; {await _kept(terminal, 'vim', is_on)}")


async def _kept(terminal: Terminal, key: str, value: str | bool) -> str:
    """Let the user's settings say how the terminal looks from now on, and return how long it stays so."""
    cwd = terminal.session.info.cwd
    try:
        path, kind = look_file(cwd, terminal.env, key)
        await to_thread.run_sync(save_ui, path, kind, key, value)
    except PanpanError as error:
        return f"until panpan ends, since it could not be saved: {error}"
    return f"saved in {Locations.find(cwd, terminal.env).shown(path)}"


async def _statusline(terminal: Terminal, rest: str) -> None:
    command = terminal.session.settings.ui.status_line
    cwd = terminal.session.info.cwd
    path, _ = look_file(cwd, terminal.env, "status_line")
    now = f"the first line that `{clean_line(command)}` prints" if command else "panpan's own"
    todo = "To have another one, change the command" if command else "To have one of your own, name a command"
    say(
        terminal,
        f"the status line is {now}. {todo} in {Locations.find(cwd, terminal.env).shown(path)}, and start panpan anew: "
        "the command reads JSON about the session from its standard input.",
    )
    say(terminal, '[ui]\nstatus_line = "my-status-line"', "code")


SCREEN_COMMANDS: Sequence[Command] = (
    Command("theme", "Choose the colours", _theme, arguments="[name]", is_immediate=True, needs_terminal=True),
    Command("vim", "Switch the vi keys on or off", _vim, is_immediate=True, needs_terminal=True),
    Command(
        "statusline", "Say how to have a status line of your own", _statusline, is_immediate=True, needs_terminal=True
    ),
)
