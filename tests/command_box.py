"""A throw-away box in which real bash runs command lines whose programs only say how they were started."""

import posixpath
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("a", "b", "no", "rm", "-x", "2", "b#", "=", "A", "cat", "a=1", "~", "é", "time", "if", "then", "do", "in")
"""Names of stubs; `no` fails, every other goes well."""
FILES = ("f", "g.py", "-n", "x y", "{a,b}", "d/h.py", "d/d/i", "e f/j")

_STUB = """#!/bin/bash
printf '%s\\0' "$PWD" "$#" "${0##*/}" "$@" >>"$LOG"
[ "${0##*/}" != no ]
"""
_DRIVER = """
for file in /lines/*; do
  number=${file##*/}
  mkdir -p "/box/$number/home" "/box/$number/work"; cd "/box/$number/work"
  mkdir -p d/d 'e f'; touch -- %s
  IFS= read -r -d '' line <"$file"
  env -i PATH=/stubs LOG="/logs/$number" HOME="/box/$number/home" %s \\
    /usr/bin/timeout 10 /bin/bash -c "$line" </dev/null >/dev/null 2>&1
done; true
"""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of one program."""

    directory: str
    """Relative to where its line started."""
    words: tuple[str, ...]
    """The program's name first."""


class CommandBox:
    """Runs lines in real bash, where nothing is but stubs on PATH; a new folder for each, no network, no machine.

    Args:
        folder: An empty folder for what goes in and out.
        variables: What the environment of the lines holds beside PATH and HOME.
    """

    def __init__(self, folder: Path, **variables: str) -> None:
        self._folder = folder
        self._variables = [f"{name}={value}" for name, value in variables.items()]
        stubs = folder / "stubs"
        stubs.mkdir()
        for name in PROGRAMS:
            (stubs / name).write_text(_STUB)
            (stubs / name).chmod(0o755)

    def run(self, lines: Sequence[str]) -> list[list[Start]]:
        """Return for each line the programs that it started, in the order in which they wrote it down."""
        for name in ("lines", "logs"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
            (self._folder / name).mkdir()
        for number, line in enumerate(lines):
            (self._folder / "lines" / f"{number:05}").write_bytes(line.encode("utf-8", "surrogatepass"))
        quoted = " ".join(f"'{name}'" for name in FILES)
        driver = _DRIVER % (quoted, " ".join(f"'{variable}'" for variable in self._variables))
        subprocess.run([*self._box(), "/bin/bash", "-c", driver], check=True, timeout=100, capture_output=True)
        return [self._starts(f"{number:05}") for number in range(len(lines))]

    def _box(self) -> list[str]:
        folder = str(self._folder)
        system = [part for place in ("/bin", "/lib", "/lib64", "/usr") for part in _mounted(place)]
        own = ["--ro-bind", f"{folder}/stubs", "/stubs", "--ro-bind", f"{folder}/lines", "/lines"]
        writable = ["--bind", f"{folder}/logs", "/logs", "--tmpfs", "/box", "--dev", "/dev"]
        return ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", *system, *own, *writable]

    def _starts(self, number: str) -> list[Start]:
        log = self._folder / "logs" / number
        fields = log.read_bytes().split(b"\0")[:-1] if log.exists() else []
        texts = [field.decode("utf-8", "surrogateescape") for field in fields]
        starts = []
        while texts:
            directory, count = texts[0], int(texts[1])
            starts.append(Start(posixpath.relpath(directory, f"/box/{number}/work"), tuple(texts[2 : count + 3])))
            del texts[: count + 3]
        return starts


def _mounted(place: str) -> list[str]:
    path = Path(place)
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), place]
    return ["--ro-bind", place, place] if path.exists() else []
