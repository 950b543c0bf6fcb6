"""Commands about how the terminal looks and which keys it knows."""

from collections.abc import Sequence
from typing import get_args

from panpan.system.terminal_text import clean_line
from panpan.ui.repl.canvas import say
from panpan.ui.repl.commands.command import Command, Option, Terminal
from panpan.ui.repl.theme import ThemeName

THEMES: Sequence[ThemeName] = get_args(ThemeName)


async def _theme(terminal: Terminal, wanted: str) -> None:
    name = next((name for name in THEMES if name == wanted.lower()), None)
    if wanted and name is None:
        say(terminal, f"no theme is called {clean_line(wanted)}; there are {', '.join(THEMES)}", "bad")
        return
    if name is None:
        options = [Option(theme, is_current=theme == terminal.theme.name) for theme in THEMES]
        picked = await terminal.choose("Which theme?", options)
        if picked is None:
            return
        name = THEMES[picked]
    terminal.use_theme(name)
    say(terminal, f"theme: {name}")


async def _vim(terminal: Terminal, rest: str) -> None:
    is_on = terminal.toggle_vim()
    say(terminal, "vi keys are on: Esc leaves the insert mode, i enters it" if is_on else "vi keys are off")


async def _statusline(terminal: Terminal, rest: str) -> None:
    command = terminal.session.settings.ui.status_line
    now = f"the output of `{clean_line(command)}`" if command else "panpan's own"
    say(
        terminal,
        f"the status line is {now}. To have one of your own, name a command in ~/.panpan/settings.toml: it is given "
        "JSON about the session, and the first line that it prints is shown:",
    )
    say(terminal, '[ui]\nstatus_line = "my-status-line"', "code")


SCREEN_COMMANDS: Sequence[Command] = (
    Command("theme", "Choose the colours", _theme, arguments="[name]", is_immediate=True),
    Command("vim", "Switch the vi keys on or off", _vim, is_immediate=True),
    Command("statusline", "Say how to have a status line of your own", _statusline, is_immediate=True),
)
