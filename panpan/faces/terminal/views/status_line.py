"""The line below the input: mode, vi keys, model, how full the context window is, folder, cost, branch, tasks, a hint.

The rule: it is never wider than the terminal. Where there is little room, whole parts are left out, the least important
first. None is cut but the name of the model, which goes before nothing but the mode, and the last one that is left.
"""

from collections.abc import Mapping

from panpan.faces.cost_text import cost_in_short
from panpan.faces.terminal.rendering.cells import cell_width, cut
from panpan.faces.terminal.rendering.fitting import fitting
from panpan.faces.terminal.screen.theme import Role, Theme
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode

_SEPARATOR = " · "
_LEAST_MODEL = 12
"""Cells in which the name of a model can still be told."""
_NEARLY_FULL_PERCENT = 80
_FULL_PERCENT = 95

_MODES: Mapping[PermissionMode, tuple[str, Role]] = {
    "default": ("default", "dim"),
    "acceptEdits": ("accept edits", "accent"),
    "plan": ("plan mode", "plan"),
    "dontAsk": ("don't ask", "accent"),
    "bypassPermissions": ("bypass permissions", "bad"),
}


@dataclass(frozen=True, slots=True)
class StatusState:
    """What the line tells; what is empty or None is left out."""

    mode: PermissionMode = "default"
    vi_mode: str = ""
    """Such as "NORMAL"; empty where the vi keys are off."""
    model: str = ""
    thinks: bool = False
    """Whether the model is asked to think before it answers."""
    context_used_percent: float | None = None
    """Of the context window, from 0 to 100."""
    cost_usd: float | None = None
    """Of the session."""
    is_cost_estimated: bool = False
    """True if a part of it is an estimate."""
    folder: str = ""
    """Where commands and completion start; empty where that is the workspace itself."""
    branch: str = ""
    background_tasks: int = 0
    """How many run."""
    hint: str = ""
    """A few words about a key."""


@dataclass(frozen=True, slots=True)
class _Part:
    text: str
    role: Role
    rank: int
    """The lowest is left out last."""


def beside_mode(line: str, mode: PermissionMode, width: int, theme: Theme) -> str:
    """Return a line of the user's own behind the mode, which is always told where it is not the usual one."""
    if mode == "default":
        return cut(line, width)
    text, role = _MODES[mode]
    return cut(f"{theme.paint(role, text)}{theme.paint('dim', _SEPARATOR)}{line}", width)


def status_line(state: StatusState, width: int, theme: Theme) -> str:
    """Return the line, with SGR sequences, at most `width` cells wide."""
    parts = _parts(state, width)
    kept = fitting([(part.text, part.rank) for part in parts], width, _SEPARATOR)
    if not kept:
        first = min(parts, key=lambda part: part.rank)
        return theme.paint(first.role, cut(first.text, width))
    return theme.paint("dim", _SEPARATOR).join(theme.paint(parts[at].role, parts[at].text) for at in kept)


def _parts(state: StatusState, width: int) -> list[_Part]:
    """Return the parts in the order in which they stand."""
    mode, role = _MODES[state.mode]
    percent = state.context_used_percent
    context = "" if percent is None else f"{percent:.0f}% context"
    parts = [_Part(mode, role, 0)]
    if state.vi_mode:
        parts.append(_Part(state.vi_mode, "accent", 3))
    if state.model:
        parts.append(_Part(_short_model(clean_line(state.model), mode, context, width), "dim", 1))
    if state.thinks:
        parts.append(_Part("thinking", "dim", 5))
    if percent is not None:
        parts.append(_Part(context, _fullness(percent), 2))
    if state.folder:
        parts.append(_Part(f"in {clean_line(state.folder)}", "accent", 3))
    if state.cost_usd is not None:
        shown = cost_in_short(state.cost_usd, is_estimated=state.is_cost_estimated, decimals=2)
        parts.append(_Part(shown, "dim", 6))
    if state.branch:
        parts.append(_Part(clean_line(state.branch), "dim", 7))
    if count := state.background_tasks:
        parts.append(_Part(f"{count} task{'s' * (count != 1)} running", "accent", 4))
    if state.hint:
        parts.append(_Part(clean_line(state.hint), "dim", 8))
    return parts


def _short_model(model: str, mode: str, context: str, width: int) -> str:
    """Return the name of the model, cut to what the mode leaves; the context goes where less than enough is left."""
    room = width - cell_width(mode) - len(_SEPARATOR)
    beside_context = room - cell_width(context) - len(_SEPARATOR) if context else room
    return cut(model, beside_context if beside_context >= min(cell_width(model), _LEAST_MODEL) else max(room, 1))


def _fullness(percent: float) -> Role:
    if percent >= _FULL_PERCENT:
        return "bad"
    return "warn" if percent >= _NEARLY_FULL_PERCENT else "dim"
