"""Requirements of a project, one by one, and the manifests that contain them."""

import codecs
from collections.abc import Sequence
from posixpath import join
from typing import TypeAlias

from panpan.python_environments.machine_root import MachineRoot
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PackageRequirement:
    """A package."""

    text: str
    """A requirement (PEP 508), if its author made no mistake."""
    source: str
    """The file below the project, with the line if it is known: `requirements.txt:3`."""
    included_by: str = ""
    """The file that included that one, and that a package manager is given; empty if nothing includes it."""
    group: str = ""
    """The extra or group that it is part of, such as `extra test`, which nobody has to install; empty for none."""
    is_bound: bool = False
    """True if it only restricts the version for other requirements of the package, as a file of constraints does."""
    is_condas: bool = False
    """True if conda has it, under the name that conda knows."""

    @property
    def file(self) -> str:
        """File to give to a package manager, so that this is installed."""
        return self.included_by or file_of(self.source)


@dataclass(frozen=True, slots=True)
class PythonRequirement:
    """A range of Pythons."""

    specifier: str
    """Specifier of PEP 440."""
    source: str

    @property
    def file(self) -> str:
        """The manifest that says so."""
        return file_of(self.source)


@dataclass(frozen=True, slots=True)
class Unclear:
    """Part of a manifest that cannot be decided from files."""

    source: str
    why: str
    text: str = ""
    """Text of that part; empty if it is about the whole file."""


@dataclass(frozen=True, slots=True)
class OwnName:
    """Name of the project itself, which is therefore not a missing package."""

    name: str


Declaration: TypeAlias = PackageRequirement | PythonRequirement | Unclear | OwnName


def file_of(source: str) -> str:
    """Return the file of a source."""
    file, _, line = source.rpartition(":")
    return file if file and line.isdigit() else source


def is_for_conda(file: str) -> bool:
    """Return whether a manifest says what an environment of conda's has; pixi makes such ones, too."""
    return file.endswith((".yml", ".yaml")) or file == "pixi.toml"


# Manifests are untrusted. Read nothing outside of the project's folder, nothing large, and nothing twice. Keep an
# unreadable file as unclear, so that nobody takes it for one without requirements.

MAX_BYTES = 1_000_000
MAX_FILES = 100
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",  # PowerShell writes this for `pip freeze > requirements.txt`
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class ProjectFiles:
    """Reads files below the folder of a project."""

    def __init__(self, root: MachineRoot, folder: str) -> None:
        self._root = root
        self._folder = folder
        self._own = root.resolve(folder)
        self._seen: set[str] = set()
        self.unread: list[Unclear] = []
        """Files that were asked for and could not be read."""

    def has(self, name: str) -> bool:
        """Return whether there is anything of that name, of whatever kind."""
        return self._root.exists(join(self._folder, name))

    def names(self, folder: str) -> Sequence[str]:
        """Return the names in a folder below that of the project, empty for itself; none of one that leads outside."""
        place = self._root.resolve(join(self._folder, folder))
        if place is None or self._own is None or not f"{place}/".startswith(f"{self._own}/"):
            return ()
        return self._root.names(place)

    def was_read(self, name: str) -> bool:
        """Return whether the text of a file was asked for before."""
        return self._root.resolve(join(self._folder, name)) in self._seen

    def text(self, name: str, *, is_named: bool = False) -> str | None:
        """Return the text of a file; None if there is none, it was read before, or it cannot be read.

        `is_named`: True if another file says that it is there.
        """
        if not (is_named or self.has(name)):
            return None
        place = self._root.resolve(join(self._folder, name))
        if place in self._seen:
            return None
        if place is None or self._own is None or not place.startswith(f"{self._own}/"):
            self.unread.append(Unclear(name, "it is outside the project and was not read"))
            return None
        self._seen.add(place)
        data = self._data(place) if len(self._seen) <= MAX_FILES else None
        if len(self._seen) > MAX_FILES:
            self.unread.append(Unclear(name, f"more than {MAX_FILES} files are asked for"))
        elif data is None:
            self.unread.append(Unclear(name, "it cannot be read" if self.has(name) else "there is no such file"))
        elif len(data) > MAX_BYTES:
            self.unread.append(Unclear(name, f"it has more than {MAX_BYTES:,} bytes and is not read"))
        else:
            return _decoded(data)
        return None

    def _data(self, place: str) -> bytes | None:
        with self._root.opened(place) as stream:
            try:
                return stream.read(MAX_BYTES + 1) if stream is not None else None
            except OSError:
                return None


def _decoded(data: bytes) -> str:
    for mark, coding in _MARKS.items():
        if data.startswith(mark):
            return data[len(mark) :].decode(coding, errors="replace")
    return data.decode(errors="replace")
