"""Identity of the Python environment in which a command runs; nothing of it is run."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from threading import Lock

from panpan.errors import ToolError
from panpan.python_environments.find_environment import interpreter_of, package_folders
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import normalise_name
from panpan.receipts.digests import FileDigests, named, storable
from panpan.receipts.receipt import EnvironmentIdentity
from panpan.system.files.read_file import read_users_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_LOCKS = (
    "uv.lock", "poetry.lock", "pdm.lock", "pylock.toml", "Pipfile.lock", "pixi.lock", "conda-lock.yml", "Cargo.lock",
    "package-lock.json", "pnpm-lock.yaml", "yarn.lock", "go.sum", "requirements.txt",
)  # fmt: skip
_INSTALLED = compile_late(
    r"([A-Za-z0-9](?:[A-Za-z0-9._-]*?[A-Za-z0-9])?)-([A-Za-z0-9][A-Za-z0-9.!+_]*)(?:-[^-]+)?\.(?:dist|egg)-info",
    re.ASCII,
)
_MOST_REMEMBERED = 50


@dataclass(frozen=True, slots=True)
class _Python:
    interpreter: str
    version: str
    packages_sha256: str
    packages: Sequence[str] = ()
    """Sorted, each as `name==version`."""
    folders: Sequence[str] = ()
    """Folders of its packages."""


class Environments:
    """Identities of environments, looked up once for as long as their packages stay. Threads may share it.

    Args:
        roots: Folders of the workspace, the main one first; canonical.
        digests: Digests of files.
    """

    def __init__(self, roots: Sequence[Path], digests: FileDigests) -> None:
        self._roots = tuple(roots)
        self._digests = digests
        self._known: dict[str, tuple[Sequence[int], _Python]] = {}
        self._lock = Lock()

    def identity(self, cwd: Path, variables: Mapping[str, str], used: Collection[str] = ()) -> EnvironmentIdentity:
        """Return the environment of a command.

        Args:
            cwd: Where it started; canonical.
            variables: Its variables, of which PATH says where `python` is.
            used: Environments in the workspace whose interpreter was started meanwhile; if it is one alone, it counts.
        """
        prefix = next(iter(used)) if len(used) == 1 else _prefix_on_path(cwd, variables)
        python = self._python(prefix) if prefix else _Python("", "", "")
        lock = self._lock_file(cwd)
        return EnvironmentIdentity(
            interpreter=storable(python.interpreter),
            version=python.version,
            prefix=storable(prefix),
            lock=named(lock, str(self._roots[0])) if lock else "",
            lock_sha256=self._digests.read(Path(lock)).sha256 if lock else "",
            packages_sha256=python.packages_sha256,
        )

    def packages(self, packages_sha256: str) -> Sequence[str] | None:
        """Return the packages of an identity, sorted, each as `name==version`; None if it is not known any more.

        Args:
            packages_sha256: The digest of them in an identity that was returned lately.
        """
        with self._lock:
            known = [python for _, python in self._known.values()]
        return next((one.packages for one in known if one.packages_sha256 == packages_sha256), None)

    def _python(self, prefix: str) -> _Python:
        with self._lock:
            stamp, known = self._known.get(prefix, ((), None))
            if known is None or stamp != _stamp(prefix, known):
                known = _python_of(prefix)
                while len(self._known) >= _MOST_REMEMBERED:
                    del self._known[next(iter(self._known))]
                self._known[prefix] = _stamp(prefix, known), known
            return known

    def _lock_file(self, cwd: Path) -> str:
        """Return the lock file that is nearest above the folder of a command, within the workspace; empty if none."""
        folder = str(cwd)
        root = next((root for root in map(str, self._roots) if f"{folder}/".startswith(f"{root.rstrip('/')}/")), None)
        while root is not None and folder.startswith(root):
            if found := next((name for name in _LOCKS if os.path.isfile(f"{folder}/{name}")), None):  # noqa: PTH113
                return f"{folder}/{found}"
            folder = folder.rpartition("/")[0]
        return ""


def _python_of(prefix: str) -> _Python:
    machine = MachineRoot()
    interpreter = interpreter_of(machine, [prefix])
    folders = package_folders(machine, [prefix], interpreter.minor)
    found = {
        f"{normalise_name(match[1])}=={match[2]}"
        for folder in folders
        for name in machine.names(folder)
        if (match := _INSTALLED.fullmatch(name))
    }
    installed = sorted(found)
    version = interpreter.version or (f"3.{interpreter.minor}" if interpreter.minor is not None else "")
    digest = sha256(packages_text(installed)).hexdigest() if folders else ""
    return _Python(interpreter.program, version, digest, installed, folders)


def packages_digest(prefix: str) -> str:
    """Return the SHA-256 of the packages of an environment as they are now, as in its identity; empty if it is gone."""
    return _python_of(prefix).packages_sha256


def packages_text(packages: Sequence[str]) -> bytes:
    """Return the lines of packages of which an identity has the digest."""
    return "".join(f"{line}\n" for line in packages).encode()


def _stamp(prefix: str, python: _Python) -> Sequence[int]:
    """Return times that change when packages or the interpreter do."""
    return [_changed_at(path) for path in (f"{prefix}/pyvenv.cfg", f"{prefix}/bin", *python.folders)]


def _prefix_on_path(cwd: Path, variables: Mapping[str, str]) -> str:
    """Return the prefix of the `python` that a shell would start; empty if there is none."""
    for name in ("python", "python3"):
        for folder in variables.get("PATH", "").split(os.pathsep):
            place = os.path.normpath(os.path.join(cwd, folder or "."))  # noqa: PTH118 - a dozen for each command
            program = f"{place}/{name}"
            if os.access(program, os.X_OK) and os.path.isfile(program):  # noqa: PTH113
                prefix = place.rpartition("/")[0]
                if place.endswith("/shims"):
                    return _prefix_behind_shim(prefix, cwd, variables)
                if not os.path.isfile(f"{prefix}/pyvenv.cfg"):  # noqa: PTH113
                    prefix = os.path.realpath(program).rpartition("/")[0].rpartition("/")[0]
                return prefix or "/"
    return ""


def _prefix_behind_shim(pyenv: str, cwd: Path, variables: Mapping[str, str]) -> str:
    """Return the prefix that pyenv starts: of the version that a variable names, a file above, or its own setting."""
    above = (f"{folder}/.python-version" for folder in (cwd, *cwd.parents))
    named = variables.get("PYENV_VERSION") or next(filter(None, map(_first_word, (*above, f"{pyenv}/version"))), "")
    version = named.partition(":")[0]
    prefix = f"{pyenv}/versions/{version}"
    return prefix if version and "/" not in version and os.path.isdir(prefix) else ""  # noqa: PTH112


def _first_word(path: str) -> str:
    try:
        words = read_users_file(path, max_bytes=1_000).decode(errors="replace").split()
    except ToolError:
        return ""
    return words[0] if words else ""


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - some for each command
    except (OSError, ValueError):
        return 0
