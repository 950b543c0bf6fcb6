"""One thing that a project asks for, with the place that says so."""

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Wish:
    """A package."""

    text: str
    """A requirement (PEP 508), if its author made no mistake."""
    source: str
    """The file below the project, and the line where that is known: `requirements.txt:3`."""
    is_bound: bool = False
    """Whether it only says which version, for whoever else asks for the package, as a file of constraints does."""
    is_condas: bool = False
    """Whether conda has it, under the name that conda knows."""


@dataclass(frozen=True, slots=True)
class PythonWish:
    """A range of Pythons."""

    specifier: str
    """As in PEP 440."""
    source: str


@dataclass(frozen=True, slots=True)
class Unclear:
    """What nobody can tell from files."""

    source: str
    what: str
