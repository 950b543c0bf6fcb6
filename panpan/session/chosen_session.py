"""The session that a script chooses by a UUID or a name of its own: it is opened, or begun where there is none.

The rule: one name is one session, also where two panpans begin it in the same moment. So the id of a session that is
begun under a name follows from the name, and the lock of its log decides.
"""

from pathlib import Path
from uuid import NAMESPACE_URL, UUID, uuid5

from panpan.config.locations import Locations
from panpan.errors import ConfigError
from panpan.session.finding import find_session, session_titled
from panpan.session.store import archived_logs, logs_of_all_projects, session_path
from panpan.types.dataclass import dataclass

MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class ChosenSession:
    """A session that may not be there yet."""

    id: str
    log: Path | None = None
    """None: it has none yet."""
    title: str | None = None
    """Title that it gets when it is begun; None: it was chosen by its id."""


def chosen_session(locations: Locations, wanted: str) -> ChosenSession:
    """Return the session of an id or a name; blocks.

    Args:
        locations: Those of the project.
        wanted: A UUID is the id of a session of any project. Everything else is a name: the one that a session of this
            project was begun under this way, or else its title.

    Raises:
        ConfigError: The name is empty or too long.
        SessionError: Several sessions have that title, or it is archived.
    """
    if (session_id := _id_in(wanted)) is not None:
        places = [session_path(locations.sessions_folder, session_id), *logs_of_all_projects(locations.home)]
        found = next((log for log in places if log.stem == session_id and _is_begun(log)), None)
        if found is None and any(log.stem == session_id for log in archived_logs(locations.home)):
            find_session(locations.home, locations.sessions_folder, session_id)  # says how to bring it back
        return ChosenSession(session_id, found)
    name = " ".join(wanted.split())
    if not 0 < len(name) <= MAX_NAME_CHARS:
        raise ConfigError(f"the name of a session has 1 to {MAX_NAME_CHARS} characters")
    session_id = str(uuid5(NAMESPACE_URL, f"panpan:{locations.project_root}:{name.casefold()}"))
    own = session_path(locations.sessions_folder, session_id)
    if _is_begun(own):
        return ChosenSession(session_id, own)
    if (titled := session_titled(locations.sessions_folder, name)) is not None:
        return ChosenSession(titled.stem, titled)
    return ChosenSession(session_id, title=name)


def _id_in(text: str) -> str | None:
    try:
        return str(UUID(text))
    except ValueError:
        return None


def _is_begun(log: Path) -> bool:
    """Return whether something was written into a log; an empty one belongs to a panpan that has just opened it."""
    try:
        return log.stat().st_size > 0
    except OSError:
        return False
