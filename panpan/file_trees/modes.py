"""Permission bits of files and folders, of which git itself keeps one: whether the owner may run a file.

Most files and folders have the same bits, so what is kept is these, and those that have others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from panpan.types.dataclass import dataclass

_RUN_BY_OWNER = 0o100
_ALL_BITS = 0o7777
_FOLDER = 0o755


@dataclass(frozen=True, slots=True)
class Modes:
    """The permission bits of the files and folders of one snapshot."""

    file: int = 0o644
    """Of a file that cannot be run, unless it is among `others`."""
    program: int = 0o755
    """Of a file that its owner may run, unless it is among `others`."""
    folder: int = _FOLDER
    """Of a folder, unless it is among `others`."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Of files and folders with other bits, by path; that of a folder ends with a slash."""

    @property
    def usual(self) -> tuple[int, int, int]:
        """The bits of what is not among `others`."""
        return self.file, self.program, self.folder

    def of(self, path: str, *, is_program: bool = False) -> int:
        """Return the bits of one file or folder."""
        if path.endswith("/"):
            return self.others.get(path, self.folder)
        return self.others.get(path, self.program if is_program else self.file)

    def changed(self, bits: Mapping[str, int], gone: Iterable[str] = ()) -> "Modes":
        """Return the bits after some have got others; the usual ones stay, so that the two can be compared."""
        others = dict(self.others)
        for path in (*gone, *bits):
            others.pop(path, None)
        others |= {path: mode for path, mode in bits.items() if mode != self._usual_of(path, mode)}
        return Modes(*self.usual, others)

    def with_folders(self, bits: Mapping[str, int]) -> "Modes":
        """Return the bits with those of all folders."""
        files = {path: mode for path, mode in self.others.items() if not path.endswith("/")}
        return Modes(*self.usual, files).changed(bits)

    def as_json(self) -> dict[str, Any]:
        """Return what `modes_from` reads."""
        return {"file": self.file, "program": self.program, "folder": self.folder, "others": dict(self.others)}

    def _usual_of(self, path: str, mode: int) -> int:
        if path.endswith("/"):
            return self.folder
        return self.program if mode & _RUN_BY_OWNER else self.file


def modes_of(bits: Mapping[str, int]) -> Modes:
    """Return the bits of all files and folders in short.

    Args:
        bits: Those of each, by path.
    """
    folder = _usual((mode for path, mode in bits.items() if path.endswith("/")), _FOLDER)
    files = [mode for path, mode in bits.items() if not path.endswith("/")]
    file = _usual((mode for mode in files if not mode & _RUN_BY_OWNER), 0o644)
    program = _usual((mode for mode in files if mode & _RUN_BY_OWNER), 0o755)
    return Modes(file, program, folder).changed(bits)


def modes_from(data: Any) -> Modes:
    """Return what `as_json` gave; a snapshot of an older panpan says nothing of folders.

    Raises:
        ValueError: It is something else.
    """
    match data:
        case {"file": int(file), "program": int(program), "others": dict(others)}:
            folder = found if isinstance(found := data.get("folder"), int) else _FOLDER
            bits = {str(path): int(mode) & _ALL_BITS for path, mode in others.items()}
            return Modes(file & _ALL_BITS, program & _ALL_BITS, folder & _ALL_BITS, bits)
        case _:
            raise ValueError("these are no permission bits")


def _usual(modes: Iterable[int], default: int) -> int:
    counted = Counter(modes).most_common(1)
    return counted[0][0] if counted else default
