"""`locks/` of a kit: the lock of the sources, and the packages that the runs of the check had."""

import shutil
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from anyio import to_thread

from panpan.errors import ToolError
from panpan.python_environments.metadata import normalise_name
from panpan.repro.checking.results import CheckReport
from panpan.repro.kit.contents import Contents
from panpan.repro.kit.script import PACKAGES, LockKind
from panpan.system.files.read_file import read_regular_file
from panpan.system.processes.process import capture
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_EXPORT_S = 60.0
_MAX_BYTES = 10_000_000
_PACKAGE = compile_late(r"[a-z0-9-]+==[A-Za-z0-9.!+_]+")
"""A line of the list. Others would be options for pip."""
_VERSION = compile_late(r"[A-Za-z0-9.+]+")


async def add_lock(contents: Contents, source: Path, environ: Mapping[str, str]) -> LockKind:
    """Add the lock of the sources, and return the way to install it.

    Args:
        contents: The kit.
        source: Folder of the sources.
        environ: The user's environment.
    """
    if (source / "uv.lock").is_file():
        await to_thread.run_sync(contents.add_file, "locks/uv.lock", source / "uv.lock")
        await _export_lock(contents, source, environ)
        return "uv"
    if (source / "requirements.txt").is_file():
        await to_thread.run_sync(contents.add_file, "locks/requirements.txt", source / "requirements.txt")
        return "requirements"
    return "project" if (source / "pyproject.toml").is_file() else "none"


async def _export_lock(contents: Contents, source: Path, environ: Mapping[str, str]) -> None:
    """Add what pip needs beside uv.lock, if uv is here; it reads the lock, and builds and fetches nothing."""
    uv = shutil.which("uv", path=environ.get("PATH"))
    if uv is None:
        return
    words = [uv, "export", "--frozen", "--offline", "--no-emit-project", "--quiet", "--no-header"]
    with suppress(ToolError):
        done = await capture(words, cwd=source, timeout_s=_EXPORT_S)
        if done.exit_code == 0:
            contents.add_text("locks/requirements.txt", done.stdout.decode(errors="replace"))


@dataclass(frozen=True, slots=True)
class RunPackages:
    """The environment of most runs."""

    python: str
    """Version of Python; empty if it is not known."""
    packages: Sequence[str]
    """Each as `name==version`."""


def add_packages(contents: Contents, check: CheckReport, source: Path) -> RunPackages | None:
    """Add the packages of the environment of most runs, and return them; None if they are not known.

    The package of the sources themselves is left out, and so are those whose names are private.

    Args:
        contents: The kit.
        check: The check.
        source: Folder of the sources.
    """
    if not check.environments:
        return None
    used, own = check.environments[0], _own_name(source)
    clean = [one for one in used.packages if _PACKAGE.fullmatch(one) and contents.words.clean(one) == one]
    packages = [one for one in clean if one.partition("==")[0] != own]
    python = _python_version(check, used.sha256)
    head = [f"# Python {python}"] if python else []
    if others := len(check.environments) - 1:
        head.append(f"# the packages of most runs; check.json has all {others + 1} environments")
    contents.add_text(PACKAGES, "".join(f"{line}\n" for line in [*head, *packages]))
    return RunPackages(python, packages)


def _python_version(check: CheckReport, digest: str) -> str:
    found = (one.environment.version for one in check.receipts if one.environment.packages_sha256 == digest)
    return next(filter(_VERSION.fullmatch, found), "")


def _own_name(source: Path) -> str:
    """Return the name of the package that the sources are; empty if they are none."""
    with suppress(OSError, ToolError, ValueError):
        data: Any = tomllib.loads(read_regular_file(source / "pyproject.toml", max_bytes=_MAX_BYTES).decode())
        name = (data.get("project") or {}).get("name")
        return normalise_name(name) if isinstance(name, str) else ""
    return ""
