"""What a call has changed in an environment: what was installed before, against what is afterwards."""

from collections.abc import Collection, Iterator, Sequence

from panpan.capabilities.environment.metadata import normalised
from panpan.capabilities.packages.installed import Installed
from panpan.types.dataclass import dataclass

_MOST_SHOWN = 60
"""Packages of each kind of change that are named."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The difference of two freezes; each package is in one of the three at most."""

    added: tuple[Installed, ...] = ()
    removed: tuple[Installed, ...] = ()
    changed: tuple[tuple[Installed, Installed], ...] = ()
    """What each was, and what it is."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    @property
    def lines(self) -> Iterator[str]:
        """What changed, a line for each kind of change."""
        if self.added:
            yield _line("added", [str(package) for package in self.added])
        if self.removed:
            yield _line("removed", [str(package) for package in self.removed])
        if self.changed:
            yield _line("changed", [_shown(before, after) for before, after in self.changed])

    def summary(self, asked: Collection[str] = ()) -> str:
        """Return the same on one short line, for people; of much the first.

        Args:
            asked: Normalised names of the packages that the call named, which come first; what came along with them
                comes last, and before that what is another now, and what is gone.
        """
        changed = [(after.name, _shown(before, after)) for before, after in self.changed]
        removed = [(package.name, f"- {package.name} {package.version}") for package in self.removed]
        added = [(package.name, f"+ {package.name} {package.version}") for package in self.added]
        named = sorted((*changed, *removed, *added), key=lambda one: normalised(one[0]) not in asked)
        parts = [text for _, text in named]
        rest = f" and {len(parts) - 4} more" if len(parts) > 4 else ""
        return f"{', '.join(parts[:4])}{rest}" if parts else "nothing changed"


def difference(before: Sequence[Installed], after: Sequence[Installed]) -> Changes:
    """Return what is other in `after` than in `before`."""
    old, new = ({package.key: package for package in packages} for packages in (before, after))
    return Changes(
        added=tuple(package for key, package in new.items() if key not in old),
        removed=tuple(package for key, package in old.items() if key not in new),
        changed=tuple((old[key], package) for key, package in new.items() if key in old and old[key] != package),
    )


def _line(what: str, texts: Sequence[str]) -> str:
    rest = f" and {len(texts) - _MOST_SHOWN} more" if len(texts) > _MOST_SHOWN else ""
    return f"{what}: {', '.join(texts[:_MOST_SHOWN])}{rest}"


def _shown(before: Installed, after: Installed) -> str:
    if before.version != after.version:
        return f"{before.name} {before.version} → {after.version}"
    return f"{before.name} {before.version} ({_kind(before)} → {_kind(after)})"


def _kind(package: Installed) -> str:
    return package.path or package.address or package.build or "from an index"
