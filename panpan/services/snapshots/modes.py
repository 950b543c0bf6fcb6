"""Permission bits of files, of which git itself keeps one: whether the owner may run the file.

Most files of a folder have the same bits, so what is kept is these, and the files that have others.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from panpan.types.dataclass import dataclass

_RUN_BY_OWNER = 0o100
_ALL_BITS = 0o7777


@dataclass(frozen=True, slots=True)
class Modes:
    """The permission bits of the files of one snapshot."""

    file: int = 0o644
    """Of a file that cannot be run, unless it is among `others`."""
    program: int = 0o755
    """Of a file that its owner may run, unless it is among `others`."""
    others: Mapping[str, int] = field(default_factory=dict)
    """Of files with other bits, by path."""

    def of(self, path: str, *, is_program: bool) -> int:
        """Return the bits of one file."""
        return self.others.get(path, self.program if is_program else self.file)

    def changed(self, bits: Mapping[str, int], gone: Iterable[str] = ()) -> "Modes":
        """Return the bits after some files have got others; the usual ones stay, so that the two can be compared."""
        others = dict(self.others)
        for path in (*gone, *bits):
            others.pop(path, None)
        usual = (self.file, self.program)
        others |= {path: mode for path, mode in bits.items() if mode != usual[bool(mode & _RUN_BY_OWNER)]}
        return Modes(self.file, self.program, others)

    def as_json(self) -> dict[str, Any]:
        """Return what `modes_from` reads."""
        return {"file": self.file, "program": self.program, "others": dict(self.others)}


def modes_of(bits: Mapping[str, int]) -> Modes:
    """Return the bits of all files in short.

    Args:
        bits: Those of each file, by path.
    """
    file = _usual((mode for mode in bits.values() if not mode & _RUN_BY_OWNER), 0o644)
    program = _usual((mode for mode in bits.values() if mode & _RUN_BY_OWNER), 0o755)
    return Modes(file, program).changed(bits)


def modes_from(data: Any) -> Modes:
    """Return what `as_json` gave.

    Raises:
        ValueError: It is something else.
    """
    match data:
        case {"file": int(file), "program": int(program), "others": dict(others)}:
            bits = {str(path): int(mode) & _ALL_BITS for path, mode in others.items()}
            return Modes(file & _ALL_BITS, program & _ALL_BITS, bits)
        case _:
            raise ValueError("these are no permission bits")


def _usual(modes: Iterable[int], default: int) -> int:
    counted = Counter(modes).most_common(1)
    return counted[0][0] if counted else default
