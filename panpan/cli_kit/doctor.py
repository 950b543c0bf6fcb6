"""Checks of `panpan doctor`: their results, and parts for those in the `doctor.py` of a feature.

Nothing of the project is run, no key is shown, and nothing is changed. A check without a result says so. A problem that
keeps panpan from working is `broken`, one that costs a feature is `missing`, and one that few users notice is
`optional`.
"""

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from panpan.config.locations import Locations
from panpan.config.sources import Loaded
from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.types.dataclass import dataclass

Status: TypeAlias = Literal["ok", "note", "optional", "missing", "broken"]

SMALL_MODEL = "small model"
"""Name of the check of the embedded model."""

MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check."""

    name: str
    status: Status
    found: str
    advice: str = ""
    """Consequence of the result, or what to do; empty if all is well."""


class Machine:
    """The machine and the folder that are checked.

    `loaded`: the settings; None if they cannot be read. `model_kind`: kind of the chosen model; empty if none.
    """

    def __init__(
        self, locations: Locations, env: Mapping[str, str], loaded: Loaded | None, model_kind: str = ""
    ) -> None:
        self.locations = locations
        self.env = env
        self.loaded = loaded
        self.model_kind = model_kind

    @cached_property
    def program_folders(self) -> Sequence[str]:
        """Folders on the user's path whose programs may be run: those that the project cannot have put there."""
        entries = self.env.get("PATH", os.defpath).split(os.pathsep)
        return [entry for entry in entries if Path(entry).is_absolute() and not self._is_in_project(entry)]

    def _is_in_project(self, entry: str) -> bool:
        try:
            return is_below(canonical_path(Path(entry)), self.locations.project_root)
        except ToolError:  # not a usable path
            return True

    def find_program(self, name: str, *, beside: Path | None = None) -> str | None:
        """Return the absolute path of a program, or None; one in the folder `beside` comes first."""
        folders = [str(beside), *self.program_folders] if beside else self.program_folders
        return next((found for folder in folders if (found := shutil.which(name, path=folder))), None)


Section: TypeAlias = Literal["leavings", "model", "web", "programs"]
"""Section of a feature's check: leftovers of sessions, models, requests over the web, programs."""

FeatureChecks: TypeAlias = Mapping[Section, Callable[[Machine], Iterable[Check]]]


def name_first(found: Sequence[object]) -> str:
    """Return the names of the first things found, and the number of others."""
    more = len(found) - MAX_NAMED
    return ", ".join(map(str, found[:MAX_NAMED])) + (f" and {more} more" if more > 0 else "")
