"""The records that installers leave beside packages, and the head of each: names, versions, needs.

Their form is "Recording installed projects" (packaging.python.org); egg-info is what setuptools and conda still write.
"""

import re
from collections.abc import Iterator

from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.types.dataclass import dataclass

_OF_CONDA = re.compile(r"(.+)-([^-]+)-[^-]+\.json")
_HEAD_BYTES = 256_000
"""Of metadata only the head is needed, which stands before the description."""


@dataclass(frozen=True, slots=True)
class Head:
    """Lines such as `Name: numpy`."""

    lines: tuple[str, ...]

    def all(self, key: str) -> Iterator[str]:
        """Yield what is said of a key, such as each `Requires-Dist`."""
        start = f"{key}: "
        return (line[len(start) :].strip() for line in self.lines if line.startswith(start))

    def first(self, key: str) -> str:
        """Return what is said of a key first; empty where nothing is."""
        return next(self.all(key), "")


def records_in(root: MachineRoot, folder: str) -> Iterator[tuple[str, Head | None]]:
    """Yield where each record in a folder of packages lies, with its head; None where that cannot be read.

    What pip renamed to take a package away, and never deleted, is none.
    """
    for name in root.names(folder):
        place = f"{folder}/{name}"
        if name.startswith("~"):
            continue
        if name.endswith(".dist-info"):
            yield place, read_head(root, f"{place}/METADATA")
        elif name.endswith(".egg-info"):  # a folder with PKG-INFO, or that file itself
            yield place, read_head(root, f"{place}/PKG-INFO") or read_head(root, place)


def conda_records(root: MachineRoot, prefix: str) -> tuple[tuple[str, str], ...]:
    """Return names and versions of all that conda says it installed in an environment, as its files are called."""
    matches = (_OF_CONDA.fullmatch(name) for name in root.names(f"{prefix}/conda-meta"))
    return tuple((match[1], match[2]) for match in matches if match)


def read_head(root: MachineRoot, path: str) -> Head | None:
    """Return the head of a file of metadata; None where it cannot be read."""
    text = root.text(path, max_bytes=_HEAD_BYTES)
    return None if text is None else Head(tuple(text.replace("\r\n", "\n").partition("\n\n")[0].split("\n")))


def normalised(name: str) -> str:
    """Return a name as all spellings of it are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
