"""Environment of an attempt: its variables, free ports, GPUs, and a Python environment that uv makes.

The rule: what differs between attempts comes by variables, and each attempt has places of its own. Only uv's cache is
shared, and packages are copied from it, so that no attempt changes the files of another one.
"""

import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from anyio import to_thread

from panpan.batch.attempts.commands import Command, Ground, UnfitError, require_command
from panpan.batch.definition.campaign import WorkspaceSettings
from panpan.batch.store.records import Task
from panpan.batch.store.wording import value_text
from panpan.errors import ToolError
from panpan.python_environments.sources import UNKNOWN_HOST
from panpan.python_environments.uv_sources import locked_hosts, uv_source
from panpan.system.environment import ATTEMPT_VARIABLE, AXIS_VARIABLES, TASK_VARIABLE, how_to_install
from panpan.system.files.canonical import user_home
from panpan.system.files.folder_tree import remove_tree
from panpan.types.permission import PACKAGE_INDEXES

LOOPBACK = "127.0.0.1"


class HeldPorts:
    """Free ports of this machine, held until the attempt is about to start.

    Args:
        count: Number of ports.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
        self.numbers: Sequence[int] = ()

    def __enter__(self) -> Self:
        try:
            for one in self._sockets:
                one.bind((LOOPBACK, 0))
        except OSError as error:
            self.release()
            raise UnfitError(
                f"no port of {LOOPBACK} can be had: {error.strerror}; end programs that use many"
            ) from error
        self.numbers = [one.getsockname()[1] for one in self._sockets]
        return self

    def release(self) -> None:
        """Give the ports to the program that is about to start."""
        for one in self._sockets:
            one.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def attempt_variables(
    task: Task,
    number: int,
    *,
    gpus: Sequence[str] = (),
    ports: Sequence[int] = (),
    venv: Path | None = None,
    path: str = "",
) -> dict[str, str]:
    """Return the variables that an attempt has beside those of the user.

    Args:
        task: The task.
        number: Number of the attempt.
        gpus: GPUs that it may use; without any, what the machine sets stays.
        ports: Free ports.
        venv: Its Python environment, if it has one.
        path: The user's PATH.
    """
    variables = {TASK_VARIABLE: task.id, ATTEMPT_VARIABLE: str(number)}
    variables |= {f"{AXIS_VARIABLES}{name.upper()}": value_text(value) for name, value in task.axes.items()}
    if gpus:
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    names = ["PORT"] if len(ports) == 1 else [f"PORT_{place}" for place in range(1, len(ports) + 1)]
    variables |= {name: str(port) for name, port in zip(names, ports, strict=True)}
    if venv is not None:
        programs = venv / "bin"
        variables["VIRTUAL_ENV"] = variables["UV_PROJECT_ENVIRONMENT"] = str(venv)
        variables["PATH"] = f"{programs}{os.pathsep}{path}" if path else str(programs)
    return variables


async def make_uv_environment(
    ground: Ground, settings: WorkspaceSettings, venv: Path, variables: Mapping[str, str]
) -> None:
    """Make the Python environment of an attempt, in place of what a kill left half-made.

    Args:
        ground: Where the attempt works.
        settings: Those of the campaign.
        venv: Folder of the environment.
        variables: Variables of the attempt.

    Raises:
        UnfitError: uv is not installed on this machine.
        CommandFailedError: uv could not make it.
        PanpanError: The folder or a receipt cannot be written.
    """
    uv = shutil.which("uv", path=ground.environ.get("PATH"))
    if uv is None:
        raise UnfitError(f"uv is not installed on {socket.gethostname()}; install it with {how_to_install('uv')}")
    cache = uv_cache_folder(ground.environ)
    await to_thread.run_sync(_make_room, venv, cache)
    source = uv_source(ground.loaded.settings.packages, ground.environ, ground.folder)
    hosts = [host for host in (*source.hosts, *locked_hosts(ground.folder)) if host != UNKNOWN_HOST]
    own = {**variables, **uv_variables(ground.environ)}
    for argv in _uv_commands(uv, ground, settings, venv, source.arguments):
        command = Command(
            f"uv {argv[1]}",
            argv,
            settings.setup_timeout_s,
            hosts=(PACKAGE_INDEXES, *dict.fromkeys(hosts)),
            writable=(venv, cache),
        )
        await require_command(command, ground, own)


def _uv_commands(
    uv: str, ground: Ground, settings: WorkspaceSettings, venv: Path, index: Sequence[str]
) -> Iterator[Sequence[str]]:
    python = ("--python", settings.python) if settings.python else ()
    yield (uv, "venv", "--allow-existing", *python, "--", str(venv))
    folders = [folder for folder in (ground.folder, *ground.folder.parents) if folder.is_relative_to(ground.workspace)]
    install = (uv, "pip", "install", "--python", str(venv), *index)
    if any((folder / "uv.lock").is_file() for folder in folders):
        yield (uv, "sync", "--frozen", *python, *index)
    elif (ground.folder / "requirements.txt").is_file():
        yield (*install, "-r", "requirements.txt")
    elif (ground.folder / "pyproject.toml").is_file():
        yield (*install, "-e", ".")


def uv_cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the user's cache of uv ("Caching", uv's documentation)."""
    if named := environ.get("UV_CACHE_DIR"):
        return Path(named)
    return Path(environ.get("XDG_CACHE_HOME") or user_home() / ".cache") / "uv"


def _make_room(venv: Path, cache: Path) -> None:
    try:
        if venv.exists():
            remove_tree(venv)
        venv.mkdir()  # a box opens only what is there
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"{error.filename or venv} cannot be made: {error.strerror}") from error


_OF_PIP = {
    "PIP_INDEX_URL": ("UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    "PIP_EXTRA_INDEX_URL": ("UV_INDEX", "UV_EXTRA_INDEX_URL"),
    "PIP_FIND_LINKS": ("UV_FIND_LINKS",),
    "PIP_CERT": ("SSL_CERT_FILE",),
}
"""Variables of pip, each with those of uv that mean the same."""


def uv_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return how uv is to work, with the indexes that the user has named for pip and not for uv."""
    found = {"UV_CACHE_DIR": str(uv_cache_folder(environ)), "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never"}
    # a link into the cache would let an attempt change the packages of all others
    found["UV_LINK_MODE"] = environ.get("UV_LINK_MODE", "copy")
    for of_pip, of_uv in _OF_PIP.items():
        if environ.get(of_pip) and not any(environ.get(name) for name in of_uv):
            words = environ[of_pip].split()
            found[of_uv[0]] = (",".join if of_pip == "PIP_FIND_LINKS" else " ".join)(words)
    return found
