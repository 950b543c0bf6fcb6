"""Opens the log of a session, new or resumed, and says what the session begins with."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path

from panpan.errors import PanpanError
from panpan.services.sessions.fold import FoldedSession
from panpan.services.sessions.git_branch import git_branch
from panpan.services.sessions.log import SessionLog
from panpan.services.sessions.parts import ModelParts
from panpan.services.sessions.prefix import SessionPrefix, kept_prefix
from panpan.services.sessions.resuming import EarlierModel, prefix_note, resumed, resumed_mode
from panpan.services.sessions.setup import Setup
from panpan.services.sessions.store import newest_session, session_path
from panpan.types.dataclass import dataclass
from panpan.types.ids import new_id
from panpan.types.permission import PermissionMode


@dataclass(frozen=True, slots=True)
class OpenedLog:
    """A log that is open, and what it adds up to."""

    id: str
    """Of the session."""
    log: SessionLog
    before: FoldedSession = field(default_factory=FoldedSession)
    """What was said and decided before; nothing in a new session."""
    git_branch: str = ""
    """Branch at the start."""
    forked_from: str = ""
    """Id of the session that this one was made a copy of just now; empty: of none."""


def open_log(
    setup: Setup, *, continues: bool, resume: str | None, forks: bool, warn: Callable[[str], None]
) -> OpenedLog:
    """Open the log of a new session, or of the one that is to go on.

    Args:
        setup: The session's.
        continues: Whether to go on with the newest session of the project.
        resume: The session to go on with, see `named_session`.
        forks: Whether to go on in a copy of that session.
        warn: Told what of a resumed session is not as it was.

    Raises:
        SessionError: The session does not exist, is open elsewhere, or cannot be read.
    """
    folder = setup.locations.sessions_folder
    path: Path | None = None
    forked_from = ""
    if resume is not None:
        from panpan.services.sessions.named_session import named_session

        named = named_session(setup.locations, resume, say=warn)
        path = named.log
        if named.note:
            warn(named.note)
    elif continues:
        path = newest_session(folder)
    if forks and path is not None:
        from panpan.services.sessions.forking import fork

        forked_from, path = path.stem, fork(path, folder)
    session_id = path.stem if path is not None else new_id()
    branch = git_branch(setup.locations.project_root)
    log = SessionLog(
        path or session_path(folder, session_id),
        session_id=session_id,
        cwd=setup.cwd,
        git_branch=branch,
        must_exist=path is not None,
    )
    if path is None:
        return OpenedLog(session_id, log, git_branch=branch)
    if not log.is_locked:
        warn("the sessions are on a file system without locks: let no other panpan go on with this one meanwhile")
    with ExitStack() as stack:  # closes the log should it not be readable
        stack.callback(log.close)
        before = resumed(path, cwd=setup.cwd, warn=warn)
        stack.pop_all()
    log.parent_uuid = before.last_uuid
    return OpenedLog(session_id, log, before, branch, forked_from)


def opening_prefix(
    model: ModelParts, before: FoldedSession, *, are_prompts_chosen: bool, warn: Callable[[str], None]
) -> SessionPrefix:
    """Return what the requests of the session begin with: what they began with before, for models of this kind.

    Args:
        model: The model that is asked now.
        before: What the log holds.
        are_prompts_chosen: Whether the user gave a system prompt, which a resumed session does not take.
        warn: Told where the model gets something else than it, or the one before it, got.
    """
    prefix = kept_prefix(model.prefix, before.prefixes, model.profile)
    if prefix.system != model.prefix.system and are_prompts_chosen:
        warn("the session keeps the system prompt that it was begun with")
    if before.prefixes and prefix is model.prefix:
        warn(prefix_note(model.name, model.profile))
    return prefix


def earlier_model(setup: Setup, before: FoldedSession) -> EarlierModel | None:
    """Return the model that the session was last with; None where the log does not say."""
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
    setup: Setup, before: FoldedSession, *, is_attended: bool, warn: Callable[[str], None]
) -> PermissionMode:
    """Return the permission mode that the session begins with."""
    return resumed_mode(
        before.permission_mode,
        setup.settings.permission.mode,
        is_option=setup.loaded.origins["permission.mode"].kind == "flag",
        is_attended=is_attended,
        warn=warn,
    )
