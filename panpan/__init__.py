"""panpan, a coding agent for the terminal.

Importing it costs nothing: the names below are loaded when they are first used. `docs/python-api.md` documents them and
those of `panpan.events` and `panpan.tools`.

    answer = await panpan.ask("why does this test fail?")

    async with panpan.open_session("path/to/project") as session:
        async with contextlib.aclosing(session.submit("why does this test fail?")) as events:
            async for event in events:
                ...
"""

from panpan.public_names import loader
from panpan.version import __version__

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds

if TYPE_CHECKING:
    from panpan.api import ask, ask_sync, open_session
    from panpan.errors import PanpanError
    from panpan.session.session import Session
    from panpan.types.events import Event

__all__ = ["Event", "PanpanError", "Session", "__version__", "ask", "ask_sync", "open_session"]

__getattr__ = loader(
    __name__,
    {
        "Event": "panpan.types.events",
        "PanpanError": "panpan.errors",
        "Session": "panpan.session.session",
        "ask": "panpan.api",
        "ask_sync": "panpan.api",
        "open_session": "panpan.api",
    },
)
