"""What a project asks for of its environment, as its manifests say.

The rule: nothing of them is run, and what cannot be understood is named, and never taken for met.
"""

from collections.abc import Iterator
from itertools import islice

from panpan.config.bounded_toml import parse_toml
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import normalised
from panpan.python_environments.project.conda_wishes import CONDA_FILES, conda_wishes, pixi_wishes
from panpan.python_environments.project.project_files import OwnName, ProjectFiles, PythonWish, Said, Unclear, Wish
from panpan.python_environments.project.pyproject_wishes import pipfile_wishes, pyproject_wishes, table_of
from panpan.python_environments.project.requirement_wishes import optional_requirements, requirement_wishes
from panpan.python_environments.project.setup_wishes import setup_cfg_wishes, setup_py_wishes
from panpan.types.dataclass import dataclass

MAX_WISHES = 2_000


@dataclass(frozen=True, slots=True)
class ProjectWishes:
    """All that is asked for, in the order of the files."""

    folder: str
    names: frozenset[str] = frozenset()
    """Those of the project itself, normalised."""
    python: tuple[PythonWish, ...] = ()
    packages: tuple[Wish, ...] = ()
    unclear: tuple[Unclear, ...] = ()

    @property
    def says_something(self) -> bool:
        """Whether any manifest does, be it that nothing is asked for."""
        return bool(self.names or self.python or self.packages or self.unclear)


def project_wishes(root: MachineRoot, folder: str) -> ProjectWishes:
    """Return what the project in a folder asks for.

    Args:
        root: The machine.
        folder: Absolute; nothing outside of it is read.
    """
    files = ProjectFiles(root, folder.rstrip("/"))
    found = list(islice(_said_in(files), MAX_WISHES + 1))
    if len(found) > MAX_WISHES:
        found[MAX_WISHES:] = [Unclear(folder, f"only the first {MAX_WISHES:,} things that it asks for are looked at")]
    found += files.unread[:MAX_WISHES]
    return ProjectWishes(
        folder,
        frozenset(normalised(one.name) for one in found if isinstance(one, OwnName) and one.name),
        tuple(one for one in found if isinstance(one, PythonWish)),
        tuple(one for one in found if isinstance(one, Wish)),
        tuple(one for one in found if isinstance(one, Unclear)),
    )


def _said_in(files: ProjectFiles) -> Iterator[Said]:
    is_said = False
    for one in _of_manifests(files):
        is_said = is_said or one != OwnName("")
        yield one
    yield from optional_requirements(files, are_all=not is_said)


def _of_manifests(files: ProjectFiles) -> Iterator[Said]:
    yield from _of_toml(files)
    yield from setup_cfg_wishes(files)
    yield from setup_py_wishes(files)
    if files.has("requirements.txt"):
        yield from requirement_wishes(files, "requirements.txt")
    for name in CONDA_FILES:
        yield from conda_wishes(files, name)


def _of_toml(files: ProjectFiles) -> Iterator[Said]:
    for name in ("pyproject.toml", "pixi.toml", "Pipfile"):
        text = files.text(name)
        try:
            manifest = parse_toml(text or "")
        except ValueError:
            yield Unclear(name, "it is no TOML, or too deep")
            continue
        if name == "pixi.toml":
            yield from pixi_wishes(manifest, name)
        elif name == "Pipfile":
            yield from pipfile_wishes(manifest, name)
        else:
            yield from pyproject_wishes(files, text or "", manifest)
            yield from pixi_wishes(table_of(manifest, "tool", "pixi"), name)
