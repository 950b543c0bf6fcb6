"""Opens the log of a session, new or resumed, and tells the user what it begins with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panpan.config.locations import Locations
from panpan.config.project_limits import STRICTNESS
from panpan.errors import PanpanError, SessionError
from panpan.models.provider_kind import ModelProfile
from panpan.session.agent import ModelParts
from panpan.session.log.fold import FoldedSession, fold_records
from panpan.session.log.record_kinds import OpenedRecord, SessionPrefix, kept_prefix
from panpan.session.log.session_log import SessionLog, read_records
from panpan.session.setup import SessionSetup
from panpan.session.stored.store import newest_session, session_path
from panpan.system.git.git_places import git_branch
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.messages import Message, SystemReminder, UserMessage, new_id
from panpan.types.permission import PermissionMode

if TYPE_CHECKING:
    from panpan.session.stored.finding import ChosenSession


def resume_log(path: Path, *, cwd: Path, warn: Callable[[str], None]) -> FoldedSession:
    """Return all that the log of an earlier session adds up to; warn of what is not as it was."""
    damaged_lines: list[int] = []
    session = fold_records(read_records(path, note_damage=damaged_lines.append))
    for note in _notes(session, damaged_lines, path, cwd):
        warn(note)
    return session


def resumed_mode(
    left_in: PermissionMode | None,
    settings: PermissionMode,
    *,
    is_option: bool,
    is_interactive: bool,
    warn: Callable[[str], None],
) -> PermissionMode:
    """Return the permission mode in which a session goes on: that in which the user left it, where that is safe.

    A log grants nothing by itself. bypassPermissions is never taken from one, and a mode that withholds less than that
    of the settings only where a user is there to read in which mode they are.

    Args:
        left_in: The mode that the user chose last in the session; None: none.
        settings: The mode of the settings.
        is_option: True if the command line gave that, which then holds.
        is_interactive: True if a user watches.
        warn: Told where the mode is not what the user might expect.
    """
    if left_in is None or left_in == settings or is_option:
        return settings
    is_looser = STRICTNESS[left_in] < STRICTNESS[settings]
    if left_in == "bypassPermissions" or (is_looser and not is_interactive):
        warn(f"resumed in mode {settings} instead of {left_in}; --permission-mode sets another")
        return settings
    warn(f"resumed in mode {left_in}, as you left it; --permission-mode sets another")
    return left_in


@dataclass(frozen=True, slots=True)
class EarlierModel:
    """The model that a session was last with."""

    name: str
    """Name by which its provider knows it."""
    is_at_hand: bool
    """True if its name leads to it, with the settings as they are."""

    def note(self, now: str) -> str:
        """Return a note for the user about asking `now`; empty if that is the same model."""
        if self.name == now:
            return ""
        name = clean_line(self.name)
        back = f"; --model {name} or /model {name} switches back" if self.is_at_hand else ""
        return f"resumed with {now} instead of {name}{back}"


def prefix_note(model: str, profile: ModelProfile) -> str:
    """Return a note for the user about going on with another kind of model."""
    what = (
        "panpan's full system prompt and all tools" if profile.tools is None else "a short system prompt and few tools"
    )
    return f"{model} gets {what}, unlike the model before; the first answer takes longer, since nothing is cached"


def _notes(session: FoldedSession, damaged_lines: Sequence[int], path: Path, cwd: Path) -> Iterator[str]:
    if damaged_lines:
        one, more = f"line {damaged_lines[0]} of the session's log", len(damaged_lines) - 1
        what = f"{one} and {more} further cannot be read and count" if more else f"{one} cannot be read and counts"
        yield f"{what} for nothing: {path}"
    if session.begun_in not in (None, str(cwd)):
        yield f"the session was begun in {session.begun_in}; its tools work in {cwd} now"
    if session.is_from_newer_version:
        yield "a newer panpan wrote the session; records that this one does not know are left out"


DROP_REFUSED = "Resume rejected by --resume-drops-turn:"
"""Words that programs look for in the error of a cut which would drop more than its caller knows of."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The place at which an earlier session goes on; what was said behind it stays in the log, as a branch."""

    at: str
    """`uuid` of the last message that goes on."""
    drops: str | None = None
    """`uuid` of the message of the user whose turn alone is left out; None if anything may be."""

    def check(self, messages: Sequence[Message], session_id: str) -> None:
        """Refuse a cut that is not as the caller believes.

        Args:
            messages: The whole conversation.
            session_id: Its id, for the error.

        Raises:
            SessionError: There is no such message, or more would be left out than the one turn.
        """
        place = next((index for index, message in enumerate(messages) if message.uuid == self.at), None)
        if place is None:
            raise SessionError(f"the session {session_id} has no message {clean_line(self.at)} to go on after")
        if self.drops is None:
            return
        left = messages[place + 1 :]
        said = [message.uuid for message in left if isinstance(message, UserMessage)]
        if said[:1] != [self.drops]:
            raise SessionError(f"{DROP_REFUSED} the turn behind {self.at} does not begin with {clean_line(self.drops)}")
        told = [message for message in left if isinstance(message, SystemReminder) and message.category == "task"]
        if len(said) > 1 or told:
            what = f"{len(said) - 1} further messages" if len(said) > 1 else "the end of a task that runs beside"
            raise SessionError(
                f"{DROP_REFUSED} {what} would be dropped, too; resume without it, and look at them first"
            )


@dataclass(frozen=True, slots=True)
class SessionSelection:
    """The session to open; by default a new one."""

    continue_latest: bool = False
    """True to open the newest session of the project."""
    resume: str | None = None
    """Text that names the session, see `named_session`."""
    chosen: str | None = None
    """Its UUID or name, see `chosen_session`; with one of the two above, those of the copy."""
    fork: bool = False
    """True to go on in a copy of it."""
    cut: "Cut | None" = None
    """The end of the part of it that goes on; None for all of it."""
    folder: Path | None = None
    """Folder for the log of a new session or a copy; None for that of the project."""

    @property
    def must_exist(self) -> bool:
        """True if the session must exist already."""
        return self.continue_latest or self.resume is not None

    def exists(self, locations: Locations) -> bool:
        """Return True if it is an earlier one; blocks."""
        chosen = self.find_chosen(locations)
        return self.must_exist or (chosen is not None and chosen.log is not None)

    def find_chosen(self, locations: Locations) -> "ChosenSession | None":
        """Return the session of the UUID or name; None if there is none of both. Blocks."""
        if self.chosen is None:
            return None
        from panpan.session.stored.finding import chosen_session

        return chosen_session(locations, self.chosen)


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that is open, and the session that it contains."""

    id: str
    log: SessionLog
    before: FoldedSession = field(default_factory=FoldedSession)
    """The session so far; empty in a new one."""
    git_branch: str = ""
    forked_from: str = ""
    """Id of the session of which this one was made a copy just now; empty if it is no new copy."""
    title: str | None = None
    """New title; None keeps the present one."""

    def opened_note(self, *, is_interactive: bool) -> Mapping[str, Any] | None:
        """Return the record of how it is opened; None if it stays what it is.

        A run that goes on with a session of the terminal does not take it off the lists; a session that it begins or
        copies is its own.
        """
        is_own = self.log.parent_uuid is None or bool(self.forked_from)
        if is_interactive == self.before.is_interactive or not (is_interactive or is_own):
            return None
        return OpenedRecord(interactive=is_interactive).as_json()


def open_log(
    setup: SessionSetup, which: SessionSelection, *, is_interactive: bool, warn: Callable[[str], None]
) -> OpenedLog:
    """Open the log of a new session, or of the one that is to go on; on a terminal, the newest is one of a terminal.

    Raises:
        SessionError: The session does not exist, is open elsewhere, or cannot be read.
    """
    folder = which.folder or setup.locations.sessions_folder
    chosen = which.find_chosen(setup.locations)
    path = _log_to_go_on_with(setup, which, chosen, is_interactive=is_interactive, warn=warn)
    forked_from = ""
    if which.fork and path is not None:
        from panpan.session.log.recorder import fork

        forked_from = path.stem
        path = fork(path, folder, chosen.id if chosen is not None and which.must_exist else None)
    session_id = path.stem if path is not None else chosen.id if chosen is not None else new_id()
    branch = git_branch(setup.locations.project_root)
    log = SessionLog(
        path or session_path(folder, session_id),
        session_id=session_id,
        cwd=setup.cwd,
        git_branch=branch,
        must_exist=path is not None,
    )
    title = chosen.title if chosen is not None else None
    if path is None and log.is_new:
        return OpenedLog(session_id, log, git_branch=branch, title=title)
    if not log.is_locked:
        warn("the sessions are on a file system without locks: do not open this one in another panpan meanwhile")
    with ExitStack() as stack:  # closes the log if it cannot be read
        stack.callback(log.close)
        before = resume_log(log.path, cwd=setup.cwd, warn=warn)
        stack.pop_all()
    log.go_on_after(before.last_uuid)
    return OpenedLog(session_id, log, before, branch, forked_from, title if which.must_exist else None)


def _log_to_go_on_with(
    setup: SessionSetup,
    which: SessionSelection,
    chosen: "ChosenSession | None",
    *,
    is_interactive: bool,
    warn: Callable[[str], None],
) -> Path | None:
    """Return the log of the session that goes on, or is copied; None for a new one."""
    if which.must_exist and chosen is not None and chosen.log is not None:
        raise SessionError(f"the session {which.chosen!r} exists already; choose another id or name for the copy")
    if which.resume is not None:
        from panpan.session.stored.finding import named_session

        named = named_session(setup.locations, which.resume, say=warn)
        if named.note:
            warn(named.note)
        return named.log
    if which.continue_latest:
        from panpan.session.stored.finding import newest_interactive

        return (newest_interactive if is_interactive else newest_session)(setup.locations.sessions_folder)
    if chosen is not None and chosen.log is None and which.fork:
        raise SessionError(f"there is no session {which.chosen!r} to copy; leave out --fork-session to begin it")
    return None if chosen is None else chosen.log


def opening_prefix(
    model: ModelParts, before: FoldedSession, *, are_prompts_chosen: bool, warn: Callable[[str], None]
) -> SessionPrefix:
    """Return the beginning of the session's requests: what it was before, for models of this kind.

    A resumed session does not take a system prompt that the user gave (`are_prompts_chosen`).
    """
    prefix = kept_prefix(model.prefix, before.prefixes, model.profile)
    if prefix.system != model.prefix.system and are_prompts_chosen:
        warn("the session keeps its first system prompt")
    if before.prefixes and prefix is model.prefix:
        warn(prefix_note(model.name, model.profile))
    return prefix


def earlier_model(setup: SessionSetup, before: FoldedSession) -> EarlierModel | None:
    """Return the model that the session was last with; None if the log does not say."""
    if before.model is None:
        return None
    if before.model == setup.model.model:
        return EarlierModel(before.model, is_at_hand=True)
    try:
        is_at_hand = setup.with_model(before.model).model.model == before.model
    except PanpanError:
        is_at_hand = False
    return EarlierModel(before.model, is_at_hand)


def opening_mode(
    setup: SessionSetup, before: FoldedSession, *, is_interactive: bool, warn: Callable[[str], None]
) -> PermissionMode:
    """Return the permission mode that the session begins with."""
    return resumed_mode(
        before.permission_mode,
        setup.settings.permission.mode,
        is_option=setup.loaded.origins["permission.mode"].kind == "flag",
        is_interactive=is_interactive,
        warn=warn,
    )
