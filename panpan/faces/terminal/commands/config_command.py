"""`/config`: a menu of the settings with a few values, and all settings with their sources."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from anyio import to_thread

from panpan.config.descriptions import descriptions
from panpan.config.keys import KeyPath, dotted, flatten
from panpan.config.locations import Locations
from panpan.config.settings import Settings, Table
from panpan.config.sources import Loaded, load_settings
from panpan.errors import ConfigError, PanpanError
from panpan.faces.terminal.commands.choice_commands import chosen_model, look_of, save_choice
from panpan.faces.terminal.commands.show_commands import panpan_says
from panpan.session.command import Command, Option, Terminal, say
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line
from panpan.types.content import Display, table, text
from panpan.types.dataclass import dataclass

_ALL = Option("All settings", "each with its value and origin")
_MODEL = ("model",)
_NOT_SET = "not set"


@dataclass(frozen=True, slots=True)
class Choice:
    """A setting with few values."""

    key: KeyPath
    help: str
    values: Sequence[str | bool | None]
    """Values to choose from; None in it: not set. Empty: any model."""


def choices(kind: type[Table], tables: KeyPath = ()) -> Iterator[Choice]:
    """Yield the settings of a table and its subtables that are the model, a switch or one of a few words."""
    for name, field in kind.model_fields.items():
        key, type_ = (*tables, name), field.annotation
        if isinstance(type_, type) and issubclass(type_, Table):
            yield from choices(type_, key)
        elif key == _MODEL or len(values := _values(type_)) > 1:
            yield Choice(key, _label(descriptions(kind).get(name, "")), () if key == _MODEL else values)


def _values(type_: Any) -> Sequence[str | bool | None]:
    """Return the values of a type; empty if they are not limited to a few."""
    if type_ is bool:
        return (False, True)
    found: list[Any] = []
    for one in get_args(type_):
        found += _values(one) if get_args(one) else [None if one is type(None) else one]
    return found if all(value is None or isinstance(value, str) for value in found) else ()


def _label(description: str) -> str:
    """Return the first sentence of a description, as it fits a menu."""
    first = description.partition(". ")[0].removesuffix(".").removeprefix("True if ").replace("None:", f"{_NOT_SET}:")
    return first[:1].upper() + first[1:]


async def _config(terminal: Terminal, rest: str) -> None:
    if look_of(terminal) is None:
        terminal.display(*await _all_settings(terminal))
        return
    changed: KeyPath = ()
    while True:
        loaded = await to_thread.run_sync(_load, terminal)
        offered = sorted(choices(type(loaded.settings)), key=lambda one: one.key[0] != "ui")
        values = dict(flatten(loaded.settings))
        options = [
            Option(f"{dotted(one.key)}: {_word(values[one.key])}", one.help, is_current=one.key == changed)
            for one in offered
        ]
        picked = await terminal.choose("Which setting?", [*options, _ALL])
        if picked is None:
            return
        if picked == len(offered):
            await terminal.read(*await _all_settings(terminal))
            return
        changed = offered[picked].key
        await _change(terminal, offered[picked], values[changed])


async def _change(terminal: Terminal, choice: Choice, now: object) -> None:
    """Let the user choose a value, save it, and say when it takes effect."""
    if choice.values == (False, True):
        value: str | bool | None = not now
    elif choice.values:
        options = [Option(_word(one), is_current=one == now) for one in choice.values]
        if (picked := await terminal.choose(dotted(choice.key), options)) is None:
            return
        value = choice.values[picked]
    elif (value := await chosen_model(terminal)) is None:
        return
    try:
        counts_at_once = await _use(terminal, choice.key, value)
    except PanpanError as error:  # such as a running turn, or a mode that needs a sandbox
        say(terminal, f"{dotted(choice.key)} stays {_word(now)}: {error}", "warn")
        return
    saved = await save_choice(terminal, choice.key, value)
    loaded = await to_thread.run_sync(_load, terminal)
    in_force = dict(flatten(loaded.settings))[choice.key]
    later = "" if counts_at_once else "; it counts when panpan starts next"
    if value is not None and in_force != value:
        later = f"; but {loaded.origins[dotted(choice.key)]} is stronger and says {_word(in_force)}"
    say(terminal, f"{dotted(choice.key)} is {_word(value)}, {saved}{later}")


async def _use(terminal: Terminal, key: KeyPath, value: Any) -> bool:
    """Use a value in this session if possible, and return True if it is in effect."""
    session, look = terminal.session, look_of(terminal)
    match key:
        case ("model",):
            await session.use_model(value)
        case ("effort",):
            await session.use_effort(value)
        case ("thinking",):
            session.use_thinking(is_on=value)
        case ("permission", "mode"):
            session.set_permission_mode(value)
        case ("ui", "theme") if look is not None:
            look.use_theme(value)
        case ("ui", "vim") if look is not None:
            if look.toggle_vim() is not value:
                look.toggle_vim()
        case _:
            return False
    return True


def _load(terminal: Terminal) -> Loaded:
    places = Locations.find(terminal.session.info.cwd, terminal.env)
    return load_settings(places.project_root, terminal.env, {}, places)


# All settings are printed by another panpan, as in the shell, so that there is one answer to a question. The session
# itself adds its own differences.


async def _all_settings(terminal: Terminal) -> Sequence[Display]:
    said, problem = await panpan_says(terminal, "config", "show", "--show-origin")
    pairs = await to_thread.run_sync(_of_session, terminal)
    return [
        text("A new panpan here would have:", "strong"),
        *(text(one) for one in (said, problem) if one),
        text("\nThis session has:", "strong"),
        table((name, clean_line(value)) for name, value in pairs),
    ]


def _of_session(terminal: Terminal) -> Sequence[tuple[str, str]]:
    """Return the settings that differ from those of a new session, such as those changed by commands and keys."""
    session: Session = terminal.session
    try:
        new = _texts(_load(terminal).settings)
    except ConfigError:  # reported above
        new = {}
    now = {
        **_texts(session.settings),
        "model": session.info.choice,
        "permission.mode": session.permission_mode,
        "permission.allow": ", ".join(dict.fromkeys(rule.text for rule in session.gate.rules.allow)) or "none",
        "effort": session.effort or _NOT_SET,
        "thinking": str(session.thinks).lower(),
    }
    always = ("model", "permission.mode", "permission.allow", "effort", "thinking")
    others = [key for key in now if key not in always and new and now[key] != new.get(key)]
    return [(key, now[key]) for key in (*always, *others)]


def _texts(settings: Settings) -> dict[str, str]:
    """Return each setting as a text; secrets become stars."""
    return {dotted(path): _word(value) for path, value in flatten(settings)}


def _word(value: object) -> str:
    if value is None:
        return _NOT_SET
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


CONFIG_COMMANDS: Sequence[Command] = (
    Command("config", "Change settings, or show them with their origins", _config, is_immediate=True),
)
