"""The working directory, kept from one command to the next.

The rule: the shell itself says where it ended, in a private file, whatever way the command went out; and where it ended
counts only inside the workspace. A command that replaces the shell (`exec`) or its exit trap says nothing, and then the
directory stays.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.paths import PathResolver
from panpan.system.files.read_file import read_regular_file

_REPORT = "{ set +x; command pwd -P >|%s; } 2>&-"

_BEGIN = """__panpan_command=$1; shift; [ $# = 0 ] || readonly "$@"; set --
"""
_SCRIPT = f"""{_BEGIN}trap %s EXIT; eval "$__panpan_command"
{{ __panpan_status=$?; set +x; %s; }} 2>&-; exit "$__panpan_status"
"""
"""The exit trap speaks for `exit`, `set -e` and signals, the last line for a command with an exit trap of its own."""
_SCRIPT_WITHOUT_REPORT = f"""{_BEGIN}eval "$__panpan_command"
"""


_MAX_REPORT_BYTES = 1 << 14
_BASH_PLACES = "/usr/bin:/usr/local/bin:/opt/homebrew/bin:/run/current-system/sw/bin"


class DirectoryReport:
    """The file into which the shell writes where it ended; a context manager that removes it.

    Args:
        folder: The private folder for the file, made where it is missing and removed if it is empty then; None where
            the working directory may not change, so that there is no file.
    """

    def __init__(self, folder: Path | None) -> None:
        self.file: Path | None = None
        self.failure = ""
        self._folder = folder

    def __enter__(self) -> Self:
        if self._folder is not None:
            try:
                make_private_folder(self._folder)
                fd, name = tempfile.mkstemp(prefix="cwd-", dir=self._folder)
                os.close(fd)
                self.file = canonical_path(Path(name))
            except (ConfigError, OSError, ToolError) as exc:
                self.failure = getattr(exc, "strerror", None) or str(exc)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.file is not None:
            with suppress(OSError):  # a folder has replaced it, or there is output beside it
                self.file.unlink(missing_ok=True)
                self.file.parent.rmdir()

    def read(self) -> str | None:
        """Return the directory that the shell named; None if it named none.

        Raises:
            ToolError: A command removed the file or put something else in its place.
        """
        if self.file is None:
            return None
        data = read_regular_file(self.file, max_bytes=_MAX_REPORT_BYTES)
        return os.fsdecode(data.removesuffix(b"\n")) or None


def find_shell() -> str:
    """Return the path of bash, or of sh where there is none; never one that the workspace put on PATH."""
    found = "/bin/bash" if Path("/bin/bash").exists() else shutil.which("bash", path=_BASH_PLACES)
    return found or "/bin/sh"


def is_bash(shell: str) -> bool:
    """Return whether the shell at this path reads a line as the analysis does, which knows the grammar of bash."""
    return shell.rpartition("/")[2] == "bash"


def shell_arguments(command: str, report: Path | None, *, shell: str, fixed: Sequence[str] = ()) -> list[str]:
    """Return what to start for a command.

    Args:
        command: The command, as the model wrote it.
        report: The file for the shell to say where it ended; None if that does not matter.
        shell: Path of bash or sh.
        fixed: Names of variables to which the command cannot assign.
    """
    # No start files, which could define functions, not even if bash thinks that sshd started it. `--` keeps a command
    # that begins with `-` from being an option.
    begin = [shell, "--noprofile", "--norc", "-c", "--"] if is_bash(shell) else [shell, "-c"]
    if report is None and not fixed:
        return [*begin, command]
    script = _SCRIPT_WITHOUT_REPORT
    if report is not None:
        say = _REPORT % shlex.quote(str(report))
        script = _SCRIPT % (shlex.quote(say), say)
    return [*begin, script, shell.rpartition("/")[2], command, *fixed]


def start_directory(paths: PathResolver, *, may_change: bool) -> Path:
    """Return where to run the next command.

    Where the working directory is gone, nothing runs: what was decided about the command's paths holds only there.

    Args:
        paths: Knows the working directory.
        may_change: Whether it may become the root where it is gone. Not while other calls run, which were decided, too.

    Raises:
        ToolError: The working directory is gone or leads elsewhere now.
    """
    cwd = paths.cwd
    if cwd.is_dir() and canonical_path(cwd) == cwd:
        return cwd
    gone = f"the working directory {cwd} is gone, so nothing was run"
    if not may_change:
        raise ToolError(f"{gone}", advice=f"call Bash once, with no other call beside it, to return to {paths.root}")
    paths.change_directory(paths.root)
    raise ToolError(f"{gone}; it is now {paths.root}", advice="call again")


def follow(report: DirectoryReport, paths: PathResolver) -> list[str]:
    """Make the directory where the shell ended the working directory, and return what to say of it."""
    unknown = f"the working directory stays {paths.cwd}: where the command ended is not known"
    if report.failure:
        return [f"{unknown}, {report.failure}"]
    try:
        ended_in = report.read()
    except ToolError as exc:
        return [f"{unknown}, {exc}"]
    if ended_in is None or ended_in == str(paths.cwd):
        return []
    try:
        location = paths.locate(ended_in)
        if location.is_inside:
            paths.change_directory(location.path)
            return [f"the working directory is now {paths.cwd}"]
    except ToolError as exc:
        return [f"the working directory stays {paths.cwd}: {exc}"]
    paths.change_directory(paths.root)
    return [f"the command ended in {ended_in}, outside the workspace; the working directory is {paths.root} again"]
