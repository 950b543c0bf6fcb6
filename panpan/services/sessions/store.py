"""Where sessions lie: one folder a project, one file a session."""

from pathlib import Path

from panpan.errors import SessionError


def session_path(folder: Path, session_id: str) -> Path:
    """Return the log of the session `session_id` in a project's session folder."""
    return folder / f"{session_id}.jsonl"


def newest_session(folder: Path) -> Path:
    """Return the log that was written last.

    Raises:
        SessionError: There is none.
    """
    logs = [(written_at, path) for path in folder.glob("*.jsonl") if (written_at := _written_at(path)) is not None]
    if not logs:
        raise SessionError("there is no session to continue in this folder; start one without -c")
    return max(logs)[1]


def find_session(projects: Path, folder: Path, wanted: str) -> Path:
    """Return the log of the session whose id is, or begins with, `wanted`; this project's sessions come first.

    Args:
        projects: The folder that holds every project's folder.
        folder: This project's session folder.
        wanted: An id, or its beginning.

    Raises:
        SessionError: There is none, or there are several.
    """
    if not wanted or "/" in wanted or wanted.startswith("."):
        raise SessionError(f"{wanted!r} is not a session id")
    for found in (_beginning_with(folder, wanted), _beginning_with(projects, wanted, below="*/sessions/")):
        if len(found) > 1:
            raise SessionError(f"several sessions begin with {wanted!r}: {', '.join(path.stem for path in found[:5])}")
        if found:
            return found[0]
    raise SessionError(f"there is no session {wanted!r}")


def _written_at(path: Path) -> int | None:
    """Return when the log was last written, in nanoseconds; None where it is empty or not there any more."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns if status.st_size else None


def _beginning_with(folder: Path, wanted: str, *, below: str = "") -> list[Path]:
    paths = sorted(path for path in folder.glob(f"{below}*.jsonl") if path.stem.startswith(wanted))
    exact = [path for path in paths if path.stem == wanted]
    return exact or paths
