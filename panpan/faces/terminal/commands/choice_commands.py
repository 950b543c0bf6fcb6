"""Commands for the model, its effort, login, the theme, vi keys and the status line."""

from collections.abc import Sequence
from typing import Protocol, cast, get_args, runtime_checkable

from anyio import to_thread

from panpan.cli_kit.login import log_in, log_out
from panpan.config.keys import KeyPath
from panpan.config.locations import Locations
from panpan.config.settings_writer import own_file, save_setting
from panpan.config.ui_look import ThemeSetting
from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.session_keys import stored_keys
from panpan.faces.terminal.screen.theme import Theme
from panpan.hub.choices import EFFORTS, NO_EFFORT, OfferedModel, models_for
from panpan.models.provider_kind import NO_KINDS
from panpan.session.command import Command, Option, Terminal, say
from panpan.session.models import SessionModels
from panpan.session.user_hooks import HooksOfUser
from panpan.system.text.terminal_text import clean_line
from panpan.types.llm import Effort


async def _model(terminal: Terminal, name: str) -> None:
    chosen = name or await chosen_model(terminal)
    if chosen is not None:
        reason = await terminal.session.use_model(chosen)
        say(terminal, f"from the next message on panpan asks {clean_line(reason)}")


async def chosen_model(terminal: Terminal) -> str | None:
    """Return the name of the model that the user picks; None if they pick none."""
    info = terminal.session.info
    of_session = terminal.session.find(SessionModels)
    kinds = NO_KINDS if of_session is None else of_session.setup.kinds
    models = models_for(terminal.session.settings, terminal.env, kinds, stored_keys(terminal))
    if not models:
        say(terminal, f"panpan asks {clean_line(info.choice)}; /model NAME changes that, such as /model ollama/NAME")
        return None
    title = "Which model? Prices are for a million tokens."
    picked = await terminal.choose(title, [_model_option(model, info.model) for model in models])
    return None if picked is None else models[picked].name


def _model_option(model: OfferedModel, current: str) -> Option:
    return Option(clean_line(model.name), clean_line(model.detail), is_current=current in (model.name, model.model))


async def _effort(terminal: Terminal, value: str) -> None:
    value = value.lower()
    if not value:
        now = terminal.session.effort or NO_EFFORT
        picked = await terminal.choose(
            "How much work should the model put into its answers?",
            [Option(effort, is_current=effort == now) for effort in EFFORTS],
        )
        if picked is None:
            return
        value = EFFORTS[picked]
    if value not in EFFORTS:
        raise ConfigError(f"unknown effort {clean_line(value)}; choose {', '.join(EFFORTS)}")
    await terminal.session.use_effort(None if value == NO_EFFORT else cast("Effort", value))
    say(terminal, f"effort from the next message on: {value}")


async def _login(terminal: Terminal, provider: str) -> None:
    async with terminal.questions() as ask:
        vendor = await log_in(ask, stored_keys(terminal), terminal.env, provider)
    if vendor is None:
        return
    session, models = terminal.session, terminal.session.find(SessionModels)
    if models is not None and models.setup.model.provider == vendor.name:
        reason = await session.use_model(f"{vendor.name}/{models.setup.model.model}")
        say(terminal, f"from the next message on panpan asks {clean_line(reason)}")
    else:
        say(terminal, f"/model lets you choose a model of {vendor.title}")


async def _logout(terminal: Terminal, provider: str) -> None:
    async with terminal.questions() as ask:
        said = await log_out(ask, stored_keys(terminal), terminal.env, provider)
    say(terminal, said)
    say(terminal, "This session goes on with the key that it has until you choose another model.", "dim")


MODEL_COMMANDS: Sequence[Command] = (
    Command("model", "Choose the model", _model, arguments="[name]", has_picker=True),
    Command("login", "Give panpan an API key", _login, arguments="[provider]", needs_terminal=True),
    Command("logout", "Remove an API key from panpan", _logout, arguments="[provider]", needs_terminal=True),
    Command("effort", "Choose how hard the model works", _effort, arguments="[level]", has_picker=True),
)


THEMES: Sequence[ThemeSetting] = get_args(ThemeSetting)


class ScreenLook(Protocol):
    """Colours and keys of a screen with a cursor."""

    @property
    def theme(self) -> Theme: ...

    @property
    def theme_setting(self) -> ThemeSetting:
        """Theme that the user chose, which may be to follow the terminal."""
        ...

    def use_theme(self, setting: ThemeSetting) -> None:
        """Show everything from now on in another theme."""
        ...

    def send(self, sequence: bytes) -> None:
        """Send the terminal a sequence that leaves its contents as they are."""
        ...

    def toggle_vim(self) -> bool:
        """Switch the vi keys on or off, and return True if they are now on."""
        ...


@runtime_checkable
class _Drawn(Protocol):
    look: ScreenLook | None
    """None for a screen of lines."""


def look_of(terminal: Terminal) -> ScreenLook | None:
    """Return colours and keys of a terminal's screen; None for a screen of lines."""
    return terminal.look if isinstance(terminal, _Drawn) else None


def _drawn_look(terminal: Terminal) -> ScreenLook:
    if (look := look_of(terminal)) is None:
        raise ConfigError("this command is about the screen, and here are only lines; run panpan without --plain")
    return look


async def _theme(terminal: Terminal, wanted: str) -> None:
    look = _drawn_look(terminal)
    name = next((name for name in THEMES if name == wanted.lower()), None)
    if wanted and name is None:
        say(terminal, f"unknown theme {clean_line(wanted)}; choose {', '.join(THEMES)}", "bad")
        return
    if name is None:
        options = [_option(theme, look) for theme in THEMES]
        picked = await terminal.choose("Which theme?", options)
        if picked is None:
            return
        name = THEMES[picked]
    look.use_theme(name)
    found = f", which is {look.theme.name} here" if name == "auto" else ""
    say(terminal, f"theme: {name}{found}; {await save_choice(terminal, ('ui', 'theme'), name)}")


def _option(theme: ThemeSetting, look: ScreenLook) -> Option:
    is_current = theme == look.theme_setting
    detail = f"{look.theme.name} here" if is_current and theme == "auto" else ""
    return Option(theme, detail, is_current=is_current)


async def _vim(terminal: Terminal, rest: str) -> None:
    is_on = _drawn_look(terminal).toggle_vim()
    keys = "vi keys are on: Esc leaves the insert mode, i enters it" if is_on else "vi keys are off"
    say(terminal, f"{keys}; {await save_choice(terminal, ('ui', 'vim'), is_on)}")


async def save_choice(terminal: Terminal, key: KeyPath, value: str | bool | None) -> str:
    """Save a value in the user's settings, and return words on how long it stays."""
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    try:
        if (hooks := terminal.session.find(HooksOfUser)) is not None:
            path, kind = await to_thread.run_sync(own_file, places, key)
            told = {"source": f"{kind}_settings", "file_path": str(path)}
            await hooks.tell("ConfigChange", told["source"], told)
        path = await to_thread.run_sync(save_setting, places, key, value)
    except PanpanError as error:
        return f"until you quit, since panpan cannot save it: {error}"
    return f"saved in {places.shown(path)}"


async def _statusline(terminal: Terminal, rest: str) -> None:
    command = terminal.session.settings.ui.status_line
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    path, _ = own_file(places, ("ui", "status_line"))
    now = f"the first line that `{clean_line(command)}` prints" if command else "panpan's own"
    todo = "To have another one, change the command" if command else "To have one of your own, name a command"
    say(
        terminal,
        f"the status line is {now}. {todo} in {places.shown(path)}, and restart panpan: "
        "the command reads JSON about the session from its standard input.",
    )
    say(terminal, '[ui]\nstatus_line = "my-status-line"', "code")


SCREEN_COMMANDS: Sequence[Command] = (
    Command("theme", "Choose the colours", _theme, arguments="[name]", is_immediate=True, needs_terminal=True),
    Command("vim", "Switch the vi keys on or off", _vim, is_immediate=True, needs_terminal=True),
    Command(
        "statusline", "Explain how to add your own status line", _statusline, is_immediate=True, needs_terminal=True
    ),
)
