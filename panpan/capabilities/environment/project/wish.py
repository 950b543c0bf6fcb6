"""What a project asks for, piece by piece, each with the place that says so."""

from typing import TypeAlias

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """A package."""

    text: str
    """A requirement (PEP 508), if its author made no mistake."""
    source: str
    """The file below the project, and the line where that is known: `requirements.txt:3`."""
    included_by: str = ""
    """The file that led to that one, and that a package manager is given; empty: it is that one itself."""
    group: str = ""
    """The extra or group that it is part of, such as `extra test`, which nobody has to install; empty: of none."""
    is_bound: bool = False
    """Whether it only says which version, for whoever else asks for the package, as a file of constraints does."""
    is_condas: bool = False
    """Whether conda has it, under the name that conda knows."""

    @property
    def file(self) -> str:
        """What a package manager is given to have it installed."""
        return self.included_by or file_of(self.source)


@dataclass(frozen=True, slots=True)
class PythonWish:
    """A range of Pythons."""

    specifier: str
    """As in PEP 440."""
    source: str

    @property
    def file(self) -> str:
        """The manifest that says so."""
        return file_of(self.source)


@dataclass(frozen=True, slots=True)
class Unclear:
    """What nobody can tell from files."""

    source: str
    why: str
    """Why it cannot be told."""
    text: str = ""
    """What stands there; empty where it is about the whole file."""


@dataclass(frozen=True, slots=True)
class OwnName:
    """What the project itself is called, and so nothing that is missing."""

    name: str


Said: TypeAlias = Wish | PythonWish | Unclear | OwnName
"""What a manifest says."""


def file_of(source: str) -> str:
    """Return the file of a source."""
    file, _, line = source.rpartition(":")
    return file if file and line.isdigit() else source


def is_for_conda(file: str) -> bool:
    """Return whether a manifest says what an environment of conda's has; pixi makes such ones, too."""
    return file.endswith((".yml", ".yaml")) or file == "pixi.toml"
