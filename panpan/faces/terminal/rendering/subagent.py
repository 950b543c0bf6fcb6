"""Subagents that run: a row each with how much they did, and below it the newest steps, in rows that are bounded.

One that has ended stays among them, without steps, until the results of the calls before it are there.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.faces.terminal.rendering.cells import cell_width, cut
from panpan.faces.terminal.rendering.duration import spoken_s
from panpan.faces.terminal.rendering.fitting import fitted
from panpan.faces.terminal.rendering.spinner import spinner
from panpan.faces.terminal.rendering.tool import call_line, end_mark
from panpan.faces.terminal.screen.theme import Role, Theme
from panpan.faces.terminal.views.subagent_progress import Step, StepState, SubagentProgress
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

MAX_ROWS, MAX_ROWS_EXPANDED = 12, 24
"""For all subagents together."""
_FOLDED_STEPS, _EXPANDED_STEPS = 3, 20
"""Of one."""
_INDENT = "    "
_MARKS: Mapping[StepState, tuple[str, Role]] = {
    "asks": ("?", "question"),
    "runs": ("·", "accent"),
    "done": ("●", "good"),
    "failed": ("✗", "bad"),
    "refused": ("✗", "bad"),
    "said": ("“", "dim"),
    "waits": ("…", "warn"),
}
_BEHIND: Mapping[StepState, str] = {"asks": " waits for your answer", "refused": " was not allowed"}

SubagentState: TypeAlias = Literal["runs", "done", "failed"]


@dataclass(frozen=True, slots=True)
class RunningSubagent:
    """One that has a row."""

    name: str
    """Of the tool that runs it."""
    title: str
    elapsed_s: float
    progress: SubagentProgress
    state: SubagentState = "runs"
    agent: Role | None = None
    """Colour of its kind; None: it has none."""


def subagent_rows(
    running: Sequence[RunningSubagent],
    asked_about: Collection[str],
    now_s: float,
    width: int,
    theme: Theme,
    *,
    is_expanded: bool = False,
) -> list[str]:
    """Return the rows of all that run, `MAX_ROWS` or `MAX_ROWS_EXPANDED` at most; the many have no room for steps.

    Args:
        running: They, the oldest first.
        asked_about: Ids of the calls about which the user is asked at the moment.
        now_s: Seconds of any clock that only grows; turns the spinner.
        width: Cells of a row.
        theme: How it looks.
        is_expanded: Whether more is shown, and what they say.
    """
    if not running:
        return []
    room = MAX_ROWS_EXPANDED if is_expanded else MAX_ROWS
    shown, hidden = _with_row(running, room)
    working = sum(one.state == "runs" for one in shown)
    room_for_steps = (room - len(shown) - bool(hidden)) // max(working, 1)
    most = min(room_for_steps, _EXPANDED_STEPS if is_expanded else _FOLDED_STEPS)
    rows: list[str] = []
    for one in shown:
        is_over = one.state != "runs"
        mark = end_mark(one.state == "failed", theme) if is_over else theme.paint("accent", spinner(now_s, theme))
        rows.append(call_line(mark, one.name, one.title, _counts(one, width), width, theme, agent=one.agent))
        steps = () if is_over else one.progress.steps(most, asked_about, has_words=is_expanded)
        rows += [step_row(step, width, theme) for step in steps]
    return [*rows, theme.paint("dim", cut(_told_of(hidden), width))] if hidden else rows


def _with_row(
    running: Sequence[RunningSubagent], room: int
) -> tuple[Sequence[RunningSubagent], Sequence[RunningSubagent]]:
    """Return those that have a row, in their order, and the others; those that work come first."""
    if len(running) <= room:
        return running, ()
    by_importance = sorted(range(len(running)), key=lambda index: running[index].state != "runs")
    kept = set(by_importance[: room - 1])
    hidden = [one for index, one in enumerate(running) if index not in kept]
    return [running[index] for index in sorted(kept)], hidden


def _told_of(hidden: Sequence[RunningSubagent]) -> str:
    """Return what is said of those that have no row."""
    working = sum(one.state == "runs" for one in hidden)
    over = len(hidden) - working
    if not working:
        return f"… {over:,} more {'subagent has' if over == 1 else 'subagents have'} ended"
    said = f"… {working:,} more {'subagent works' if working == 1 else 'subagents work'}"
    return f"{said}, {over:,} ended" if over else said


def step_row(step: Step, width: int, theme: Theme) -> str:
    """Return the row of one step of a subagent."""
    mark, role = _MARKS[step.state]
    behind = _BEHIND.get(step.state, "")
    said = " ".join(part for part in (clean_line(step.name), clean_line(step.text)) if part)
    indent = _INDENT + "  " * step.depth
    room = max(width - len(indent) - 2 - len(behind), 1)
    painted = "dim" if step.state not in ("asks", "waits") else role
    return cut(f"{indent}{theme.paint(role, mark)} {theme.paint(painted, cut(said, room) + behind)}", width)


def _counts(one: RunningSubagent, width: int) -> str:
    """Return how much it did, as far as there is room beside its title."""
    progress = one.progress
    parts = [
        (_counted(progress.rounds, "round"), 3),
        (_counted(progress.calls, "tool call"), 2),
        (_counted(progress.tokens, "token"), 1),
        (spoken_s(one.elapsed_s) if one.elapsed_s >= 1 else "", 0),
    ]
    beside = width - cell_width(clean_line(f"{one.name} {one.title}")) - len("* ") - len(" ")
    text = fitted([(text, rank) for text, rank in parts if text], max(beside, width // 3), " · ")
    return f" {text}" if text else ""


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}" if count else ""
