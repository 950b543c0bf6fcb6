"""The command that brings an environment what its project asks for; nothing here runs it."""

import shlex

from panpan.tools.environment.facts import Facts
from panpan.tools.environment.machine_root import MachineRoot
from panpan.tools.environment.project_wishes import ProjectWishes
from panpan.tools.environment.wish import Wish

_LOCKED = {"uv.lock": "uv sync", "poetry.lock": "poetry install", "pixi.lock": "pixi install"}
"""Files by which a manager of projects does it all by itself."""


def making(root: MachineRoot, wishes: ProjectWishes) -> str:
    """Return the command that makes an environment for a project; empty where it asks for nothing."""
    if locked := _locked(root, wishes.folder):
        return locked
    wish = next(iter(wishes.packages), None)
    if wish is None:
        return ""
    file = wish.source.partition(":")[0]
    if _is_condas(file):
        return f"conda env create --file {file}"
    return f"python3 -m venv .venv && .venv/bin/python -m pip install {_asked(file)}"


def filling(facts: Facts, wishes: ProjectWishes, wish: Wish) -> str:
    """Return the command, to be run in the project's folder, that installs what a wish is part of."""
    if locked := _locked(facts.root, wishes.folder):
        return locked
    prefix, file = facts.environment.path, wish.source.partition(":")[0]
    if _is_condas(file) and facts.environment.kind == "conda":
        return shlex.join(("conda", "env", "update", "--prefix", prefix, "--file", file))
    python = shlex.quote(f"{prefix}/bin/python")
    has_pip = facts.python.package("pip") is not None
    pip = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    return f"{pip} {shlex.quote(wish.text) if _is_condas(file) else _asked(file)}"


def _asked(file: str) -> str:
    return "--editable ." if file in ("pyproject.toml", "setup.cfg") else f"--requirement {shlex.quote(file)}"


def _is_condas(file: str) -> bool:
    return file.endswith((".yml", ".yaml"))


def _locked(root: MachineRoot, folder: str) -> str:
    return next((command for name, command in _LOCKED.items() if root.exists(f"{folder}/{name}")), "")
