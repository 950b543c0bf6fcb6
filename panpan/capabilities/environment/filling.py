"""The commands that bring a project its environment, with what it asks for; nothing here runs them."""

import shlex
from collections.abc import Sequence

from panpan.capabilities.environment.facts import Facts
from panpan.capabilities.environment.interpreter import interpreter_of
from panpan.capabilities.environment.machine_root import MachineRoot
from panpan.capabilities.environment.needs import fits_python
from panpan.capabilities.environment.project.project_wishes import ProjectWishes
from panpan.capabilities.environment.project.wish import Wish, is_for_conda

_BUILT = ("pyproject.toml", "setup.cfg", "setup.py")
_PIPENV = "PIPENV_VENV_IN_PROJECT=1 pipenv install"
"""It has environments elsewhere otherwise, where nobody finds them by the project."""
_MANAGED = {
    "uv.lock": (".venv", "uv sync"),
    "poetry.lock": (".venv", "poetry install"),
    "pixi.lock": (".pixi/envs/default", "pixi install"),
    "Pipfile.lock": (".venv", _PIPENV),
}
"""Files of managers that do it all by themselves: where each has the environment, and its command."""
_OF_MANAGERS = ("pyproject.toml", "pixi.toml", "Pipfile")
_NEWEST = 30
"""More than any minor version of Python 3 that there is, and than any patch of one."""
_MAX_RANGES = 10
_PROGRAMS = ("/usr/local/bin", "/usr/bin")
_USUAL = 12
"""One that most packages have wheels for."""


def making(root: MachineRoot, wishes: ProjectWishes) -> str:
    """Return the command that makes an environment for a project; empty where it asks for nothing."""
    if managed := _managed(root, wishes.folder):
        return managed
    files = [wish.file for wish in wishes.packages if not (wish.group or wish.is_bound)]
    file = next(iter([*files, *(one.file for one in wishes.python)]), "")
    if not file:
        return ""
    if is_for_conda(file):
        return "pixi install" if file == "pixi.toml" else shlex.join(("conda", "env", "create", "--file", file))
    if file == "Pipfile":
        return _PIPENV
    specifiers = [one.specifier for one in wishes.python if not is_for_conda(one.file)]
    return f"{_python_for(root, specifiers)} -m venv .venv && .venv/bin/python -m pip install {_asked(file)}"


def remaking(facts: Facts, folder: str, specifiers: Sequence[str]) -> str:
    """Return the command that gives an environment the Python that is asked for; empty where no version will do.

    Args:
        facts: About the environment.
        folder: The project.
        specifiers: The ranges of Python that it asks for.
    """
    if managed := _managed(facts.root, folder, facts.environment.path):
        return managed
    near = facts.python.minor[1] if facts.python.minor else _USUAL
    minor = _fitting_minor(facts.root, specifiers, near)
    if minor is None:
        return ""
    prefix = facts.environment.path
    if facts.environment.kind == "conda":
        return shlex.join(("conda", "install", "--prefix", prefix, f"python=3.{minor}"))
    place = ["--clear", prefix] if facts.environment.kind == "venv" else [".venv"]
    return shlex.join((f"python3.{minor}", "-m", "venv", *place))


def lacking(root: MachineRoot, command: str) -> str:
    """Return what has to be done before a command that makes an environment; empty where nothing has."""
    program = command.partition(" ")[0]
    if not program.startswith("python3.") or _is_there(root, program):
        return ""
    return f"make sure of {program}, which is neither in {' nor in '.join(_PROGRAMS)}"


def filling(facts: Facts, wishes: ProjectWishes, wish: Wish) -> str:
    """Return the command, to be run in the project's folder, that installs what a wish is part of."""
    prefix, file = facts.environment.path, wish.file
    managed = _managed(facts.root, wishes.folder, prefix)
    if managed and file in _OF_MANAGERS:
        return managed
    if file.endswith((".yml", ".yaml")) and facts.environment.kind == "conda":
        return shlex.join(("conda", "env", "update", "--prefix", prefix, "--file", file))
    if wish.is_condas:
        return shlex.join(("conda", "install", "--prefix", prefix, wish.text))
    python = shlex.quote(f"{prefix}/bin/python")
    has_pip = facts.python.package("pip") is not None
    pip = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    is_no_files = is_for_conda(file) or file == "Pipfile"
    return f"{pip} {shlex.quote(wish.text) if is_no_files else _asked(file)}"


def _asked(file: str) -> str:
    return "--editable ." if file in _BUILT else f"--requirement {shlex.quote(file)}"


def _managed(root: MachineRoot, folder: str, prefix: str = "") -> str:
    """Return the command of the manager of a project; empty where it has none, or another environment is meant."""
    for lock, (place, command) in _MANAGED.items():
        if root.exists(f"{folder}/{lock}") and prefix in ("", f"{folder}/{place}"):
            return command
    return ""


def _is_there(root: MachineRoot, program: str) -> bool:
    return any(root.exists(f"{folder}/{program}") for folder in _PROGRAMS)


def _python_for(root: MachineRoot, specifiers: Sequence[str]) -> str:
    """Return the program: that of the machine, if it will do or nobody knows what it is and every newer one will."""
    own = interpreter_of(root, ("/usr/local", "/usr")).minor
    if all(fits_python(one, f"3.{_NEWEST if own is None else own}") is not False for one in specifiers):
        return "python3"
    minor = _fitting_minor(root, specifiers, _USUAL if own is None else own)
    return "python3" if minor is None else f"python3.{minor}"


def _fitting_minor(root: MachineRoot, specifiers: Sequence[str], near: int) -> int | None:
    """Return the N of the Python 3.N in all ranges: one that is there, nearest to another; None where none is."""
    ranges = list(dict.fromkeys(specifiers))[:_MAX_RANGES]
    minors = sorted(range(_NEWEST), key=lambda minor: (not _is_there(root, f"python3.{minor}"), abs(minor - near)))

    def fit(version: str) -> bool:
        return all(fits_python(one, version) for one in ranges)

    whole = (minor for minor in minors if fit(f"3.{minor}"))
    in_part = (minor for minor in minors if any(fit(f"3.{minor}.{patch}") for patch in range(_NEWEST)))
    return next(whole, None) or next(in_part, None)
