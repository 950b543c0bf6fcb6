"""panpan, a coding agent for the terminal.

Importing it does nothing and costs nothing: the names below are loaded when they are first used.

    async with panpan.open_session("path/to/project") as session:
        async with contextlib.aclosing(session.submit("why does this test fail?")) as events:
            async for event in events:
                ...
"""

TYPE_CHECKING = False  # as type checkers know it; `typing` would cost some milliseconds

if TYPE_CHECKING:
    from panpan.app import open_session
    from panpan.errors import PanpanError
    from panpan.services.sessions.session import Session
    from panpan.types.events import Event

from panpan.version import __version__

__all__ = ["Event", "PanpanError", "Session", "__version__", "open_session"]

_PLACES = {
    "Event": "panpan.types.events",
    "PanpanError": "panpan.errors",
    "Session": "panpan.services.sessions.session",
    "open_session": "panpan.app",
}


def __getattr__(name: str) -> object:
    """Load a public name from the module that has it."""
    if name not in _PLACES:
        raise AttributeError(f"module 'panpan' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
