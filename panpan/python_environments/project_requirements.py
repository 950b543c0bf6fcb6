"""Requirements of a project for its environment, as its manifests say.

The rule: nothing of them is run, and what cannot be understood is named, and never taken for met.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from panpan.config.bounded_toml import parse_toml
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import normalise_name
from panpan.python_environments.project_files import (
    Declaration,
    OwnName,
    PackageRequirement,
    ProjectFiles,
    PythonRequirement,
    Unclear,
)
from panpan.python_environments.python_manifests import (
    pipfile_requirements,
    pyproject_requirements,
    setup_cfg_requirements,
    setup_py_requirements,
    table_of,
    word_in,
)
from panpan.python_environments.requirement_files import (
    CONSTRAINT,
    NESTED,
    file_requirements,
    line_requirement,
    optional_requirements,
)
from panpan.system.text.front_matter import Node, YamlError, read_yaml
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

CONDA_FILES = ("environment.yml", "environment.yaml")
_SPEC = compile_late(r"(?:[\w./-]+::?)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>.*)")
_FUZZY = compile_late(r"=?\s*(?P<version>\d[\w.!+]*?)(?:\.?\*)?(?:=[\w*]+)?")
_EXACT = compile_late(r"==\s*(?P<version>\d[\w.!+]*)(?:=[\w*]+)?")
_RANGE = compile_late(r"[<>!~=]=?\s*\d[\w.*+!]*(?:\s*,\s*[<>!~=]=?\s*\d[\w.*+!]*)*")
_MAX_LINE_CHARS = 1_000


def conda_requirements(files: ProjectFiles, name: str) -> Iterator[Declaration]:
    """Yield what a file asks for; nothing if there is none."""
    text = files.text(name) or ""
    try:
        pairs = read_yaml(text).pairs or ()
    except YamlError as error:
        lines = text.split("\n")
        line = lines[min(error.line, len(lines)) - 1].strip()  # the error may be reported behind the last line
        yield Unclear(f"{name}:{error.line}", f"it cannot be read as YAML ({error})", line[:_MAX_LINE_CHARS])
        return
    for key, value in pairs:
        if key.text == "dependencies":
            yield from _items(value, name, lambda what, source: [conda_requirement(what, source)], files)


def _items(
    node: Node, file: str, said: Callable[[str, str], Iterable[Declaration]], files: ProjectFiles
) -> Iterator[Declaration]:
    """Yield what the items of a list ask for.

    `said`: reads an item, given with its source.
    """
    if node.items is None and node.text:
        yield Unclear(f"{file}:{node.line}", "it is not a list", node.text[:_MAX_LINE_CHARS])
    for item in node.items or ():
        pairs = item.pairs or ()
        if len(pairs) == 1 and pairs[0][0].text == "pip":
            yield from _items(pairs[0][1], file, partial(_of_pip, files), files)
        elif item.text:
            yield from said(item.text, f"{file}:{item.line}")


def conda_requirement(what: str, source: str) -> PackageRequirement | PythonRequirement | Unclear:
    """Return what a specification of conda's asks for, such as `pytorch::pytorch >=2,<3`."""
    match = _SPEC.fullmatch(what) if len(what) <= _MAX_LINE_CHARS else None
    versions = _versions(match["versions"]) if match else None
    if match is None or versions is None:
        return Unclear(source, "it says more than a name and versions", what[:_MAX_LINE_CHARS])
    if match["name"].lower() == "python":
        return PythonRequirement(versions, source)
    return PackageRequirement(f"{match['name']}{versions}", source, is_condas=True)


def _of_pip(files: ProjectFiles, what: str, source: str) -> Iterator[Declaration]:
    if nested := NESTED.fullmatch(what):
        file, is_bound = source.partition(":")[0], nested["option"] in CONSTRAINT
        yield from file_requirements(files, nested["path"], included_by=file, is_bound=is_bound)
    elif said := line_requirement(what, source):
        yield said


def _versions(text: str) -> str | None:
    """Return versions as in PEP 440; None if they are not understood."""
    if not text or text == "*":
        return ""
    if match := _EXACT.fullmatch(text):
        return f"=={match['version']}"
    if match := _FUZZY.fullmatch(text):
        return f"=={match['version'].rstrip('.')}.*"
    return text.replace(" ", "") if _RANGE.fullmatch(text) else None


def pixi_requirements(pixi: Mapping[str, Any], source: str) -> Iterator[Declaration]:
    """Yield what the default environment has, of conda and of Python's index; what is for one platform alone is not."""
    yield OwnName(word_in(table_of(pixi, "workspace") or table_of(pixi, "project"), "name"))
    for name, said in table_of(pixi, "dependencies").items():
        version = _version(said)
        yield (
            Unclear(source, "it is not a version", name)
            if version is None
            else conda_requirement(f"{name} {version}", source)
        )
    for name, said in table_of(pixi, "pypi-dependencies").items():
        is_own = isinstance(said, dict) and said.get("path") in (".", "./")
        version = _version(said) or ""
        if not is_own:
            yield PackageRequirement(f"{name}{'' if version == '*' else version}", source)


def _version(said: object) -> str | None:
    version = said.get("version", "*") if isinstance(said, dict) else said
    return version if isinstance(version, str) else None


MAX_REQUIREMENTS = 2_000


@dataclass(frozen=True, slots=True)
class ProjectRequirements:
    """All that is asked for, in the order of the files."""

    folder: str
    names: frozenset[str] = frozenset()
    """Names of the project itself, normalised."""
    python: tuple[PythonRequirement, ...] = ()
    packages: tuple[PackageRequirement, ...] = ()
    unclear: tuple[Unclear, ...] = ()

    @property
    def says_something(self) -> bool:
        """True if a manifest says anything, even that nothing is required."""
        return bool(self.names or self.python or self.packages or self.unclear)


def project_requirements(root: MachineRoot, folder: str) -> ProjectRequirements:
    """Return what the project in a folder asks for."""
    files = ProjectFiles(root, folder.rstrip("/"))
    found = list(islice(_said_in(files), MAX_REQUIREMENTS + 1))
    if len(found) > MAX_REQUIREMENTS:
        found[MAX_REQUIREMENTS:] = [
            Unclear(folder, f"only the first {MAX_REQUIREMENTS:,} things that it asks for are looked at")
        ]
    found += files.unread[:MAX_REQUIREMENTS]
    return ProjectRequirements(
        folder,
        frozenset(normalise_name(one.name) for one in found if isinstance(one, OwnName) and one.name),
        tuple(one for one in found if isinstance(one, PythonRequirement)),
        tuple(one for one in found if isinstance(one, PackageRequirement)),
        tuple(one for one in found if isinstance(one, Unclear)),
    )


def _said_in(files: ProjectFiles) -> Iterator[Declaration]:
    is_said = False
    for one in _of_manifests(files):
        is_said = is_said or one != OwnName("")
        yield one
    yield from optional_requirements(files, are_all=not is_said)


def _of_manifests(files: ProjectFiles) -> Iterator[Declaration]:
    yield from _of_toml(files)
    yield from setup_cfg_requirements(files)
    yield from setup_py_requirements(files)
    if files.has("requirements.txt"):
        yield from file_requirements(files, "requirements.txt")
    for name in CONDA_FILES:
        yield from conda_requirements(files, name)


def _of_toml(files: ProjectFiles) -> Iterator[Declaration]:
    for name in ("pyproject.toml", "pixi.toml", "Pipfile"):
        text = files.text(name)
        try:
            manifest = parse_toml(text or "")
        except ValueError:
            yield Unclear(name, "it is no TOML, or too deep")
            continue
        if name == "pixi.toml":
            yield from pixi_requirements(manifest, name)
        elif name == "Pipfile":
            yield from pipfile_requirements(manifest, name)
        else:
            yield from pyproject_requirements(files, text or "", manifest)
            yield from pixi_requirements(table_of(manifest, "tool", "pixi"), name)
