"""Files that commands have made from others.

A tool that builds only what has changed looks at the times of sources and reads none, and a program is started without
the sources it was made of. So what a derived file was made of counts as read with it. The rule: where nobody knows what
a program was made of, all files of the workspace count.
"""

from collections.abc import Mapping
from dataclasses import replace

from panpan.receipts.digests import Content
from panpan.receipts.git_files import GitFiles
from panpan.receipts.kinds import is_compiled
from panpan.types.dataclass import dataclass

_MOST_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class _Origin:
    """Command that made a file."""

    sha256: str
    """SHA-256 of the file."""
    inputs: Mapping[str, Content]
    knows_all: bool
    """False if it may have read other files, too."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Files that derived files were made of."""

    contents: Mapping[str, Content]
    """As they were when they were read, by canonical path."""
    knows_all: bool
    """False if there may be others."""


class DerivedFiles:
    """Files that the commands of a workspace have made, with what they were made of.

    Args:
        git: Says which files git tracks and ignores.
    """

    def __init__(self, git: GitFiles) -> None:
        self._git = git
        self._origins: dict[str, _Origin] = {}

    def remember(self, outputs: Mapping[str, Content], inputs: Mapping[str, Content], *, knows_all: bool) -> None:
        """Take note of the files that a command has made.

        Args:
            outputs: Files that it wrote, by canonical path.
            inputs: Files that it read, among them those that other derived files were made of.
            knows_all: False if it may have read other files, too.
        """
        sources = {path: content for path, content in inputs.items() if not is_compiled(path, content)}
        for path, content in outputs.items():
            self._origins.pop(path, None)
            if content.sha256:
                while len(self._origins) >= _MOST_REMEMBERED:
                    del self._origins[next(iter(self._origins))]
                self._origins[path] = _Origin(content.sha256, sources, knows_all)

    async def sources_of(self, inputs: Mapping[str, Content]) -> Sources:
        """Return what the derived files among the inputs of a command were made of."""
        origins = {path: self._origins.get(path) for path in inputs}
        known = {
            path: origin
            for path, origin in origins.items()
            if origin is not None and origin.sha256 == inputs[path].sha256
        }
        compiled = {path for path, content in inputs.items() if is_compiled(path, content)}
        unclear = [path for path in known if path not in compiled]
        derived = (known.keys() & compiled) | await self._git.ignored(unclear)
        strange = sorted(compiled - known.keys())
        tracked = await self._git.tracked(strange)
        found: dict[str, Content] = {}
        for path in sorted(derived):
            for source, content in known[path].inputs.items():
                found[source] = _either(found.get(source), content)
        return Sources(found, all(known[path].knows_all for path in derived) and tracked.issuperset(strange))


def merged(inputs: Mapping[str, Content], sources: Mapping[str, Content]) -> dict[str, Content]:
    """Return inputs with those behind them. A file that was another one when a derived file was made has changed."""
    found = dict(inputs)
    for path, content in sources.items():
        found[path] = _either(found.get(path), content)
    return dict(sorted(found.items()))


def _either(one: Content | None, other: Content) -> Content:
    if one is None or (one.sha256 == other.sha256 and one.how == other.how):
        return other
    return replace(one, how="changed")
