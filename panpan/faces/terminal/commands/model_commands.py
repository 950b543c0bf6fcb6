"""Commands about the model: which one, and how hard it works."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast, get_args

from panpan.core.command import Command, Option, Terminal
from panpan.errors import ConfigError
from panpan.faces.terminal.screen.canvas import say
from panpan.system.text.terminal_text import clean_line
from panpan.types.llm import Effort

if TYPE_CHECKING:
    from panpan.faces.terminal.commands.model_list import OfferedModel

_NO_EFFORT = "default"
"""What the model does by itself."""
EFFORTS: Sequence[str] = (_NO_EFFORT, *get_args(Effort))


async def _model(terminal: Terminal, name: str) -> None:
    chosen = name or await _chosen_model(terminal)
    if chosen is not None:
        reason = await terminal.session.use_model(chosen)
        say(terminal, f"from the next message on panpan asks {clean_line(reason)}")


async def _chosen_model(terminal: Terminal) -> str | None:
    """Return the name of the model that the user picks."""
    from panpan.faces.terminal.commands.model_list import models_for

    info = terminal.session.info
    models = models_for(terminal.session.settings, terminal.env)
    if not models:
        say(terminal, f"panpan asks {clean_line(info.choice)}; /model NAME changes that, such as /model ollama/NAME")
        return None
    title = "Which model? Prices are for a million tokens."
    picked = await terminal.choose(title, [_option(model, info.model) for model in models])
    return None if picked is None else models[picked].name


def _option(model: "OfferedModel", current: str) -> Option:
    return Option(clean_line(model.name), clean_line(model.detail), is_current=current in (model.name, model.model))


async def _effort(terminal: Terminal, value: str) -> None:
    value = value.lower()
    if not value:
        now = terminal.session.effort or _NO_EFFORT
        picked = await terminal.choose(
            "How much work should the model put into its answers?",
            [Option(effort, is_current=effort == now) for effort in EFFORTS],
        )
        if picked is None:
            return
        value = EFFORTS[picked]
    if value not in EFFORTS:
        raise ConfigError(f"no effort is called {clean_line(value)}; there are {', '.join(EFFORTS)}")
    await terminal.session.use_effort(None if value == _NO_EFFORT else cast("Effort", value))
    say(terminal, f"effort from the next message on: {value}")


MODEL_COMMANDS: Sequence[Command] = (
    Command("model", "Choose the model", _model, arguments="[name]", offers_choice=True),
    Command("effort", "Choose how hard the model works", _effort, arguments="[level]", offers_choice=True),
)
