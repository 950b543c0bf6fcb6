"""The commands that bring a project its environment, with what it asks for; nothing here runs them."""

import shlex
from collections.abc import Sequence

from panpan.tools.environment.facts import Facts
from panpan.tools.environment.interpreter import interpreter_of
from panpan.tools.environment.machine_root import MachineRoot
from panpan.tools.environment.needs import fits_python
from panpan.tools.environment.project.project_wishes import ProjectWishes
from panpan.tools.environment.project.wish import Wish, is_for_conda

_BUILT = ("pyproject.toml", "setup.cfg", "setup.py")
_MANAGED = {
    "uv.lock": (".venv", "uv sync"),
    "poetry.lock": (".venv", "poetry install"),
    "pixi.lock": (".pixi/envs/default", "pixi install"),
}
"""Files of managers that do it all by themselves: where each has the environment, and its command."""
_NEWEST = 30
"""More than any minor version of Python 3 that there is, and than any patch of one."""
_MAX_RANGES = 10
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
    minor = _fitting_minor(specifiers, near)
    if minor is None:
        return ""
    prefix = facts.environment.path
    if facts.environment.kind == "conda":
        return shlex.join(("conda", "install", "--prefix", prefix, f"python=3.{minor}"))
    place = ["--clear", prefix] if facts.environment.kind == "venv" else [".venv"]
    return shlex.join((f"python3.{minor}", "-m", "venv", *place))


def filling(facts: Facts, wishes: ProjectWishes, wish: Wish) -> str:
    """Return the command, to be run in the project's folder, that installs what a wish is part of."""
    prefix, file = facts.environment.path, wish.file
    managed = _managed(facts.root, wishes.folder, prefix)
    if managed and file in ("pyproject.toml", "pixi.toml"):
        return managed
    if file.endswith((".yml", ".yaml")) and facts.environment.kind == "conda":
        return shlex.join(("conda", "env", "update", "--prefix", prefix, "--file", file))
    if wish.is_condas:
        return shlex.join(("conda", "install", "--prefix", prefix, wish.text))
    python = shlex.quote(f"{prefix}/bin/python")
    has_pip = facts.python.package("pip") is not None
    pip = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"{pip} {shlex.quote(wish.text) if is_for_conda(file) else _asked(file)}"


def _asked(file: str) -> str:
    return "--editable ." if file in _BUILT else f"--requirement {shlex.quote(file)}"


def _managed(root: MachineRoot, folder: str, prefix: str = "") -> str:
    """Return the command of the manager of a project; empty where it has none, or another environment is meant."""
    for lock, (place, command) in _MANAGED.items():
        if root.exists(f"{folder}/{lock}") and prefix in ("", f"{folder}/{place}"):
            return command
    return ""


def _python_for(root: MachineRoot, specifiers: Sequence[str]) -> str:
    """Return the program: that of the machine, if it will do or nobody knows what it is and every newer one will."""
    own = interpreter_of(root, ("/usr/local", "/usr")).minor
    if all(fits_python(one, f"3.{_NEWEST if own is None else own}") is not False for one in specifiers):
        return "python3"
    minor = _fitting_minor(specifiers, _USUAL if own is None else own)
    return "python3" if minor is None else f"python3.{minor}"


def _fitting_minor(specifiers: Sequence[str], near: int) -> int | None:
    """Return the N of the Python 3.N that is in all ranges and nearest to one; None where none is."""
    ranges = list(dict.fromkeys(specifiers))[:_MAX_RANGES]
    minors = sorted(range(_NEWEST), key=lambda minor: abs(minor - near))

    def fit(version: str) -> bool:
        return all(fits_python(one, version) for one in ranges)

    whole = (minor for minor in minors if fit(f"3.{minor}"))
    in_part = (minor for minor in minors if any(fit(f"3.{minor}.{patch}") for patch in range(_NEWEST)))
    return next(whole, None) or next(in_part, None)
