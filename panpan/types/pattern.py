"""Regular expressions that are compiled at their first use, so that a start does not pay for those that it never needs.

Compiling the two hundred patterns of panpan's modules was a twentieth of the time to the first request.
"""

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    compile_late = re.compile
else:

    class compile_late:  # noqa: N801
        """A pattern as `re.compile` returns it, compiled when something is asked of it."""

        def __init__(self, pattern: str | bytes, flags: int = 0) -> None:
            self._source = pattern, flags

        def __getattr__(self, name: str) -> Any:
            compiled = self.__dict__.get("_compiled") or self.__dict__.setdefault(
                "_compiled", re.compile(*self._source)
            )
            value = self.__dict__[name] = getattr(compiled, name)
            return value
