"""The report that pytest is asked for, by whatever name it is started.

PYTEST_ADDOPTS makes any pytest write a JUnit report into a folder of ours. The rule: the user's run is never changed by
that. Where the project or the user asks for a report of their own, or has switched reports off, nothing is added.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from panpan.system.files.folder_tree import make_private_folder, remove_tree
from panpan.types.pattern import compile_late

_OPTIONS = "PYTEST_ADDOPTS"
_RUNNING_TEST = "PYTEST_CURRENT_TEST"
_NAMES = (f"report-${_RUNNING_TEST}.xml", "report-.xml")
"""Name of the report. A pytest that a test starts finds the variable set, and so writes to another place: its failures
may be what the test wants to see. The second form is for a command in whose variables a test is named already."""
_CONFIGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_RECIPES = ("Makefile", "makefile", "GNUmakefile", "justfile", "noxfile.py", "tox.ini", "package.json", "Taskfile.yml")
_MOST_BYTES = 200_000
_MOST_WORDS = 50
_OWN_REPORT = compile_late(rb"addopts[\s\S]*--junit-?xml")
_REPORT_LINE = compile_late(
    r"^-* ?generated xml file: [^\n]*/report-(?:\$PYTEST_CURRENT_TEST)?\.xml ?-*\r?\n?", re.MULTILINE
)
_SWITCHED_OFF = b"no:junitxml"


class PytestReports:
    """Reports of one command.

    Args:
        scratch: A folder of our own, in which it makes one for this command.
    """

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self.folder = scratch / token_hex(4)
        """Folder that pytest has to be able to write."""
        self._taken: list[Path] = []

    def make(self) -> None:
        """Make the folder.

        Raises:
            OSError: It cannot be made.
        """
        try:
            self.folder.mkdir(0o700)
        except FileNotFoundError:  # it is the first one
            make_private_folder(self._scratch)
            self.folder.mkdir(0o700)

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        try:
            self.folder.rmdir()
        except OSError:
            with suppress(OSError):
                remove_tree(self.folder)

    def variables(self, environment: Mapping[str, str]) -> Mapping[str, str]:
        """Return variables for a command that has these, so that its options count, and ours."""
        ours = shlex.quote(f"--junitxml={self.folder / _NAMES[0]}")
        inherited = {_RUNNING_TEST: ""} if _RUNNING_TEST in environment else {}
        return {_OPTIONS: f"{environment.get(_OPTIONS, '')} {ours}".strip(), **inherited}

    def take(self, path: str) -> None:
        """Put a report aside that was just closed, so that the next pytest does not write over it."""
        if path.removeprefix(f"{self.folder}/") in _NAMES:
            aside = f"{self.folder}/taken-{len(self._taken)}.xml"
            with suppress(OSError):
                os.rename(path, aside)  # noqa: PTH104 - tried for each command
                self._taken.append(Path(aside))

    def taken(self) -> Sequence[Path]:
        """Return the reports, in the order in which they were written."""
        for name in _NAMES:
            self.take(f"{self.folder}/{name}")  # where nobody saw that it was closed
        return tuple(self._taken)


def without_report_line(text: str) -> str:
    """Return an output of pytest without the line that names our report."""
    return _REPORT_LINE.sub("", text) if "generated xml file" in text else text


def may_add_report(
    line: str, words: Iterable[str], environment: Mapping[str, str], cwd: Path, roots: Sequence[Path]
) -> bool:
    """Return True if pytest may be asked for a report: it has none of its own, as far as its settings can be found.

    Args:
        line: The command as it was written.
        words: Its words, among which may be files and folders whose settings count.
        environment: Its variables.
        cwd: Where it starts.
        roots: Folders of the workspace.
    """
    options = environment.get(_OPTIONS, "")
    if _SWITCHED_OFF.decode() in line or _SWITCHED_OFF.decode() in options or "--junit" in options:
        return False
    try:
        shlex.split(options)
    except ValueError:
        return False
    paths = list(_paths(words, cwd))
    scripts = [path for path in paths if path.endswith(".sh") or os.access(path, os.X_OK)]
    if any(_SWITCHED_OFF in _beginning(path) for path in scripts):
        return False
    return not any(_has_own_report(folder) for folder in _folders(paths, cwd, roots))


def _paths(words: Iterable[str], cwd: Path) -> Iterator[str]:
    """Yield the files and folders below the working directory that words name."""
    here = str(cwd)
    for word in [word for word in words if not word.startswith("-")][:_MOST_WORDS]:
        path = os.path.normpath(os.path.join(here, word.partition("::")[0]))  # noqa: PTH118 - it may be no path at all
        if path.startswith(f"{here}/") and os.path.lexists(path):
            yield path


def _folders(paths: Iterable[str], cwd: Path, roots: Sequence[Path]) -> Iterable[str]:
    """Return the folders in which the settings of pytest may lie, without asking a shell for it."""
    here = str(cwd)
    tops = [top for top in map(str, roots) if here == top or here.startswith(f"{top.rstrip('/')}/")]
    top = min(tops, key=len) if tops else here
    found: dict[str, None] = {}
    for folder in (here, *paths):
        while folder not in found and folder.startswith(top):
            found[folder] = None
            if folder == top:
                break
            folder = folder.rpartition("/")[0] or "/"
    return found


def _has_own_report(folder: str) -> bool:
    for name in dict.fromkeys((*_CONFIGS, *_RECIPES)):
        text = _beginning(f"{folder}/{name}")
        if _SWITCHED_OFF in text or (name in _CONFIGS and b"junit" in text and re.search(_OWN_REPORT.pattern, text)):
            return True
    return False


def _beginning(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(fd, _MOST_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)
