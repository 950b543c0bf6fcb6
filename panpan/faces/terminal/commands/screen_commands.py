"""Commands about how the terminal looks and which keys it knows."""

from collections.abc import Sequence
from typing import get_args

from anyio import to_thread

from panpan.config.locations import Locations
from panpan.config.settings_writer import save_ui
from panpan.config.ui_look import ThemeSetting, look_file
from panpan.errors import PanpanError
from panpan.faces.terminal.screen.canvas import say
from panpan.session.command import Command, Option, Terminal
from panpan.system.text.terminal_text import clean_line

THEMES: Sequence[ThemeSetting] = get_args(ThemeSetting)


async def _theme(terminal: Terminal, wanted: str) -> None:
    name = next((name for name in THEMES if name == wanted.lower()), None)
    if wanted and name is None:
        say(terminal, f"no theme is called {clean_line(wanted)}; there are {', '.join(THEMES)}", "bad")
        return
    if name is None:
        options = [_option(theme, terminal) for theme in THEMES]
        picked = await terminal.choose("Which theme?", options)
        if picked is None:
            return
        name = THEMES[picked]
    terminal.use_theme(name)
    found = f", which is {terminal.theme.name} here" if name == "auto" else ""
    say(terminal, f"theme: {name}{found}; {await _kept(terminal, 'theme', name)}")


def _option(theme: ThemeSetting, terminal: Terminal) -> Option:
    is_current = theme == terminal.theme_setting
    detail = f"{terminal.theme.name} here" if is_current and theme == "auto" else ""
    return Option(theme, detail, is_current=is_current)


async def _vim(terminal: Terminal, rest: str) -> None:
    is_on = terminal.toggle_vim()
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
