"""The receipt of a command, and its parts. All are JSON on disk; unknown fields are ignored."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field


def utc_now() -> str:
    """Return the time of this machine's clock as records have it, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


HowDigested: TypeAlias = Literal["whole", "parts", "left out", "gone", "changed", "link"]
"""Way in which a file was digested: all of it; its size, ends and samples; not at all; it was gone by then; it changed
after it was read, so that the digest, if there is one, is of another content than the command may have read; it is a
link, and the digest is that of the path in it."""


class FileDigest(_Part):
    """One file as it was."""

    path: str
    """Relative to the workspace, with slashes; absolute if it lies outside. A byte of a name that is no UTF-8 is
    written as `\\xff`."""
    size: int = 0
    """Bytes."""
    sha256: str = ""
    """Hex. Of the whole file; of size and samples if it was digested by parts; empty if it was not digested."""
    how: HowDigested = "whole"
    changed_ns: int = 0
    """Time of its last change, nanoseconds since 1970; only of a file that was digested by parts, which do not show
    every change, and of one outside the workspace that a link leads to."""


class TestCounts(_Part):
    """Counts of one machine-readable test report."""

    __test__ = False  # pytest takes a class of this name for tests

    framework: str
    """Name that the report gives, such as "pytest"; else its format, such as "junit"."""
    passed: int = 0
    failed: int = 0
    """Failures and errors."""
    skipped: int = 0
    """Skipped and expected to fail."""
    files: tuple[str, ...] = ()
    """Test files that the report names and that exist, relative to the workspace."""
    names: tuple[str, ...] = ()
    """Names of the first failed tests."""
    passed_in: Mapping[str, int] = Field(default_factory=dict)
    """Tests that passed, by the files of `files`; those whose file is not known are missing."""

    @property
    def ran(self) -> int:
        """Tests that ran to an outcome."""
        return self.passed + self.failed


class EnvironmentIdentity(_Part):
    """The environment in which a command ran. Empty fields are not known."""

    interpreter: str = ""
    """Canonical path of the Python that `python` names there."""
    version: str = ""
    """Version of that Python."""
    prefix: str = ""
    """Folder of the environment, as `sys.prefix` has it."""
    lock: str = ""
    """Path of the lock file, relative to the workspace."""
    lock_sha256: str = ""
    packages_sha256: str = ""
    """SHA-256 of the sorted lines `name==version` of the installed packages."""


CommandKind: TypeAlias = Literal["tests", "build", "run", "look"]
"""Kind of a command, by what happened: a test report with at least one test came of it; it wrote binaries or packages;
it wrote anything else or nothing; it was known only to look."""


class Receipt(_Part):
    """A command that ended."""

    id: str = ""
    """Eight hex digits."""
    name: str = ""
    """Name that the program gives it, such as "setup" and "verify" in a campaign; empty for commands of a session."""
    argv: tuple[str, ...]
    """Words with which it was started, before the sandbox; a line for a shell is one of them."""
    commands: tuple[tuple[str, ...], ...] = ()
    """Simple commands of the line as the shell parses it, each with its words; empty if it cannot be parsed."""
    cwd: str
    """Working directory, relative to the workspace ("." for its top); absolute if it lies outside."""
    began_at: str
    """UTC by the clock of the host, ISO 8601."""
    ended_at: str
    seconds: float
    exit_code: int | None
    """None if it was stopped on its way."""
    timed_out: bool = False
    box: str
    """Sandbox that held it; "off" if it ran in none."""
    network: bool | tuple[str, ...] = False
    """True if it had the network; or the hosts that it could reach."""
    kind: CommandKind = "run"
    tests: tuple[TestCounts, ...] = ()
    test_options: str = ""
    """Options of the variable PYTEST_ADDOPTS, without those that panpan adds."""
    environment: EnvironmentIdentity = EnvironmentIdentity()
    seeds: Mapping[str, str] = Field(default_factory=dict)
    """Seeds in its words and variables, by name, such as `PYTHONHASHSEED`."""
    inputs: tuple[FileDigest, ...] = ()
    """Files of the workspace that were read while it ran, as they were afterwards. A file that it wrote is one only if
    it was read after that, or if its content from before was ("changed"). By path."""
    outputs: tuple[FileDigest, ...] = ()
    """Files of the workspace that were written while it ran. By path."""
    inputs_are: Literal["opened", "all", "unknown"] = "unknown"
    """opened: the inputs are the files that were opened; all: reads cannot be seen here, so they are all files of the
    workspace; unknown: there are none to go by."""
    all_sha256: str = ""
    """Hex; of paths and digests of all files of the workspace, which may be too many to name. Only where the inputs are
    "all"."""
    more_files: int = 0
    """Inputs and outputs beyond the most that a receipt names."""
    more_inputs: int = 0
    """Inputs among `more_files`. If there are any, nobody can say that the receipt is fresh."""
    output_bytes: int = 0
    output_sha256: str = ""
    """Hex, of all that it printed."""
    host: str = ""

    @property
    def is_success(self) -> bool:
        """True if it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out
