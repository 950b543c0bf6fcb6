"""The line below the input: mode, model, how full the context window is, cost, branch, tasks, and a hint.

The rule: it is never wider than the terminal. Where there is little room, whole parts are left out, the least important
first; none is cut but the last one that is left.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from panpan.system.terminal_text import clean_line
from panpan.types.permission import PermissionMode
from panpan.ui.repl.rendering.cells import cell_width, cut
from panpan.ui.repl.theme import Role, Theme

_SEPARATOR = " · "
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
    model: str = ""
    context_used_percent: float | None = None
    """Of the context window, from 0 to 100."""
    cost_usd: float | None = None
    """Of the session."""
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

    @property
    def cells(self) -> int:
        return cell_width(self.text)


def status_line(state: StatusState, width: int, theme: Theme) -> str:
    """Return the line, with SGR sequences, at most `width` cells wide."""
    parts = _parts(state)
    room = width
    kept: set[int] = set()
    for part in sorted(parts, key=lambda part: part.rank):
        needed = part.cells + (len(_SEPARATOR) if kept else 0)
        if needed <= room:
            kept.add(part.rank)
            room -= needed
    shown = [part for part in parts if part.rank in kept]
    if not shown:
        first = min(parts, key=lambda part: part.rank)
        return theme.paint(first.role, cut(first.text, width))
    return theme.paint("dim", _SEPARATOR).join(theme.paint(part.role, part.text) for part in shown)


def _parts(state: StatusState) -> list[_Part]:
    """Return the parts in the order in which they stand."""
    mode, role = _MODES[state.mode]
    parts = [_Part(mode, role, 0)]
    if state.model:
        parts.append(_Part(clean_line(state.model), "dim", 2))
    if (percent := state.context_used_percent) is not None:
        parts.append(_Part(f"{percent:.0f}% context", _fullness(percent), 1))
    if state.cost_usd is not None:
        parts.append(_Part(f"${state.cost_usd:.2f}", "dim", 4))
    if state.branch:
        parts.append(_Part(clean_line(state.branch), "dim", 5))
    if count := state.background_tasks:
        parts.append(_Part(f"{count} task{'s' * (count != 1)} running", "accent", 3))
    if state.hint:
        parts.append(_Part(clean_line(state.hint), "dim", 6))
    return parts


def _fullness(percent: float) -> Role:
    if percent >= _FULL_PERCENT:
        return "bad"
    return "warn" if percent >= _NEARLY_FULL_PERCENT else "dim"
