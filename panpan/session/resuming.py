"""Going on with a session: what its log adds up to, and what the user should know of that first."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from panpan.config.project_limits import STRICTNESS
from panpan.models.provider_kind import ModelProfile
from panpan.session.fold import FoldedSession, folded
from panpan.session.log import read_records
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.permission import PermissionMode


def resumed(path: Path, *, cwd: Path, warn: Callable[[str], None]) -> FoldedSession:
    """Return what the log of an earlier session adds up to.

    Args:
        path: The log.
        cwd: Where the tools work now, canonical.
        warn: Told what of the session is not as it was, one sentence each.

    Raises:
        SessionError: The log cannot be read.
    """
    damaged_lines: list[int] = []
    session = folded(read_records(path, note_damage=damaged_lines.append))
    for note in _notes(session, damaged_lines, path, cwd):
        warn(note)
    return session


def resumed_mode(
    left_in: PermissionMode | None,
    settings: PermissionMode,
    *,
    is_option: bool,
    is_attended: bool,
    warn: Callable[[str], None],
) -> PermissionMode:
    """Return the permission mode in which a session goes on: that in which the user left it, where that is safe.

    A log grants nothing by itself. bypassPermissions is never taken from one, and a mode that withholds less than that
    of the settings only where a user is there to read in which mode he is.

    Args:
        left_in: The mode that the user chose last in the session; None: none.
        settings: The mode of the settings.
        is_option: Whether the command line gave that, which then holds.
        is_attended: Whether a user watches.
        warn: Told where the mode is not what the user might expect.
    """
    if left_in is None or left_in == settings or is_option:
        return settings
    is_looser = STRICTNESS[left_in] < STRICTNESS[settings]
    if left_in == "bypassPermissions" or (is_looser and not is_attended):
        warn(f"the session was left in the mode {left_in} and goes on in {settings}; --permission-mode sets another")
        return settings
    warn(f"the session goes on in the mode {left_in}, in which it was left; --permission-mode sets another")
    return left_in


@dataclass(frozen=True, slots=True)
class EarlierModel:
    """The model that a session was last with."""

    name: str
    """As its provider knows it."""
    is_at_hand: bool
    """Whether its name leads to it, with the settings as they are."""

    def note(self, now: str) -> str:
        """Return what the user should know where `now` is asked; empty where that is the same model."""
        if self.name == now:
            return ""
        name = clean_line(self.name)
        back = f"; --model {name} or /model {name} goes on with that one" if self.is_at_hand else ""
        return f"the session was last with {name} and goes on with {now}{back}"


def prefix_note(model: str, profile: ModelProfile) -> str:
    """Return what the user should know where a session begun with another kind of model goes on with this one."""
    what = (
        "panpan's full system prompt and all tools" if profile.tools is None else "a short system prompt and few tools"
    )
    return f"{model} gets {what}, other than the model before; the first answer takes longer, since nothing is cached"


def _notes(session: FoldedSession, damaged_lines: Sequence[int], path: Path, cwd: Path) -> Iterator[str]:
    if damaged_lines:
        one, more = f"line {damaged_lines[0]} of the session's log", len(damaged_lines) - 1
        what = f"{one} and {more} further cannot be read and count" if more else f"{one} cannot be read and counts"
        yield f"{what} for nothing: {path}"
    if session.begun_in not in (None, str(cwd)):
        yield f"the session was begun in {session.begun_in}; its tools work in {cwd} now"
    if session.is_from_newer_version:
        yield "the session was written by a newer panpan; what this one does not know is left out"
