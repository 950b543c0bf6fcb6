"""Requirements of the project: whether the environment meets them, and the commands that would make it so."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from panpan.capabilities.environment.layers import Constraint, Finding, State, make_constraint
from panpan.capabilities.environment.python_layer import marker_values
from panpan.python_environments.find_environment import interpreter_of
from panpan.python_environments.machine_root import MachineRoot
from panpan.python_environments.metadata import applying, fits_python, is_requirement, normalise_name, unmet
from panpan.python_environments.project_files import PackageRequirement, Unclear, file_of, is_for_conda
from panpan.python_environments.project_requirements import ProjectRequirements

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from panpan.capabilities.environment.env_doctor import Facts


_BUILT = ("pyproject.toml", "setup.cfg", "setup.py")
_PIPENV = "PIPENV_VENV_IN_PROJECT=1 pipenv install"
"""The variable puts the environment into the project; elsewhere it could not be found from there."""
_MANAGED = {
    "uv.lock": (".venv", "uv sync"),
    "poetry.lock": (".venv", "poetry install"),
    "pixi.lock": (".pixi/envs/default", "pixi install"),
    "Pipfile.lock": (".venv", _PIPENV),
}
"""Files of managers that do it all by themselves: where each has the environment, and its command."""
_OF_MANAGERS = ("pyproject.toml", "pixi.toml", "Pipfile")
_NEWEST = 30
"""A number above any existing minor version of Python 3, and above any patch number."""
_MAX_RANGES = 10
_PROGRAMS = ("/usr/local/bin", "/usr/bin")
_USUAL = 12
"""One that most packages have wheels for."""


def create_command(root: MachineRoot, requirements: ProjectRequirements) -> str:
    """Return the command that makes an environment for a project; empty where it asks for nothing."""
    if managed := _managed(root, requirements.folder):
        return managed
    files = [entry.file for entry in requirements.packages if not (entry.group or entry.is_bound)]
    file = next(iter([*files, *(one.file for one in requirements.python)]), "")
    if not file:
        return ""
    if is_for_conda(file):
        return "pixi install" if file == "pixi.toml" else shlex.join(("conda", "env", "create", "--file", file))
    if file == "Pipfile":
        return _PIPENV
    specifiers = [one.specifier for one in requirements.python if not is_for_conda(one.file)]
    return f"{_python_for(root, specifiers)} -m venv .venv && .venv/bin/python -m pip install {_asked(file)}"


def recreate_command(facts: "Facts", folder: str, specifiers: Sequence[str]) -> str:
    """Return the command that gives an environment the Python that is asked for; empty where no version will do."""
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


def missing_step(root: MachineRoot, command: str) -> str:
    """Return the step needed before a command that makes an environment; empty if there is none."""
    program = command.partition(" ")[0]
    if not program.startswith("python3.") or _is_there(root, program):
        return ""
    return f"make sure of {program}, which is neither in {' nor in '.join(_PROGRAMS)}"


def install_command(facts: "Facts", requirements: ProjectRequirements, entry: PackageRequirement) -> str:
    """Return the command, run in the project's folder, that installs the requirements with this entry."""
    prefix, file = facts.environment.path, entry.file
    managed = _managed(facts.root, requirements.folder, prefix)
    if managed and file in _OF_MANAGERS:
        return managed
    if file.endswith((".yml", ".yaml")) and facts.environment.kind == "conda":
        return shlex.join(("conda", "env", "update", "--prefix", prefix, "--file", file))
    if entry.is_condas:
        return shlex.join(("conda", "install", "--prefix", prefix, entry.text))
    python = shlex.quote(f"{prefix}/bin/python")
    has_pip = facts.python.package("pip") is not None
    pip = f"{python} -m pip install" if has_pip else f"uv pip install --python {python}"
    is_no_files = is_for_conda(file) or file == "Pipfile"
    return f"{pip} {shlex.quote(entry.text) if is_no_files else _asked(file)}"


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


def project_findings(requirements: ProjectRequirements) -> list[Finding]:
    """Return the project's requirements for the report, including optional ones of extras and groups."""
    python = (_finding("python", one.specifier, one.source) for one in requirements.python)
    kinds = ((f"package of {one.group}" if one.group else "package", one) for one in requirements.packages)
    return [*python, *(_finding(kind, one.text, one.source) for kind, one in kinds)]


def project_constraints(facts: "Facts", requirements: ProjectRequirements) -> Iterator[Constraint]:
    """Yield a constraint for each requirement of the project."""
    foreign_files = _files_for_others(facts, requirements)
    for file in sorted(foreign_files):
        has = f"{facts.environment.path} is none of conda's, and other files say what belongs into it"
        yield make_constraint("project-unclear", "unknown", f"what {file} asks for", has, source=file)
    yield from _python(facts, requirements, foreign_files)
    yield from _packages(facts, requirements, foreign_files)
    for one in requirements.unclear:
        if file_of(one.source) not in foreign_files:
            yield _told(one)


def _files_for_others(facts: "Facts", requirements: ProjectRequirements) -> frozenset[str]:
    """Return the manifests of conda's that an environment of another kind was not made from, as others say more."""
    files = {entry.file for entry in requirements.packages if not (entry.group or entry.is_bound)}
    if facts.environment.kind == "conda" or not any(not is_for_conda(file) for file in files):
        return frozenset()
    return frozenset(file for file in (*files, *(one.file for one in requirements.python)) if is_for_conda(file))


def _python(facts: "Facts", requirements: ProjectRequirements, foreign_files: frozenset[str]) -> Iterator[Constraint]:
    version = facts.python.version
    asked = [
        (one, fits_python(one.specifier, version))
        for one in requirements.python
        if version and one.file not in foreign_files
    ]
    mend = ""
    if any(fits is False for _, fits in asked):
        mend = recreate_command(facts, requirements.folder, [one.specifier for one, _ in asked])
    for one, fits in asked:
        state: State = "unknown" if fits is None else "holds" if fits else "broken"
        needs, command = f"{one.source} asks for Python {one.specifier}", mend if state == "broken" else ""
        first, has = missing_step(facts.root, command), f"it is {version}"
        yield make_constraint("project-python", state, needs, has, source=one.source, command=command, first=first)


def _packages(facts: "Facts", requirements: ProjectRequirements, foreign_files: frozenset[str]) -> Iterator[Constraint]:
    needed = [entry for entry in requirements.packages if not entry.group and entry.file not in foreign_files]
    is_condas = facts.environment.kind == "conda"
    left_out = Counter(entry.file for entry in needed if entry.is_condas and not is_condas)
    for file, count in left_out.items():
        needs = f"{file} asks conda for {_describe_packages(count)}"
        has = f"{facts.environment.path} is none of conda's"
        yield make_constraint("project-unclear", "unknown", needs, has, source=file)
    of_conda = {normalise_name(name): version for name, version in facts.python.of_conda}
    versions, markers = {**of_conda, **facts.python.versions}, marker_values(facts)
    refused = {entry.file: entry.source for entry in reversed(needed) if not is_requirement(entry.text)}
    met = missed = 0
    for entry in [entry for entry in needed if is_condas or not entry.is_condas]:
        requirement = applying(entry.text, markers)
        if requirement is None and not is_requirement(entry.text):
            yield _told(Unclear(entry.source, "it is not a requirement", entry.text))
        if requirement is None or not _counts(requirement, entry, requirements, versions):
            continue
        lacks = dict(_lacks(facts, requirement, versions, markers))
        missed, met = missed + any(lacks.values()), met + ({*lacks.values()} == {""})
        for what, lack in lacks.items():
            if lack is None:
                yield _told(Unclear(entry.source, "its version cannot be compared", what))
            elif lack:
                needs, command = f"{entry.source} asks for {what}", install_command(facts, requirements, entry)
                line = refused.get(entry.file)
                first = f"correct {line}, for which the whole file is refused" if line else ""
                yield make_constraint(
                    "project-package", "broken", needs, lack, source=entry.source, command=command, first=first
                )
    if met and not missed:
        needs = f"what the project asks for ({_describe_packages(met)})"
        yield make_constraint("project-package", "holds", needs, "all of it is there")


def _counts(
    requirement: "Requirement",
    entry: PackageRequirement,
    requirements: ProjectRequirements,
    versions: Mapping[str, str],
) -> bool:
    """True if it has to be installed; neither the project itself has to be, nor a package that is only bounded."""
    name = normalise_name(requirement.name)
    return name not in requirements.names and (name in versions or not entry.is_bound)


def _lacks(
    facts: "Facts", requirement: "Requirement", versions: Mapping[str, str], markers: Mapping[str, str]
) -> Iterator[tuple[str, str | None]]:
    """Yield each unmet requirement, also of its extras, with the version that is installed instead, as in `unmet`."""
    yield f"{requirement.name}{requirement.specifier}", unmet(requirement, versions)
    package = facts.python.package(normalise_name(requirement.name))
    for extra in sorted(requirement.extras) if package else ():
        for text in package.requires if package else ():
            needed = applying(text, {**markers, "extra": extra})
            if needed is not None and applying(text, markers) is None:
                what = f"{requirement.name}[{extra}], which needs {needed.name}{needed.specifier}"
                yield what, unmet(needed, versions)


def _describe_packages(count: int) -> str:
    return f"{count} package{'' if count == 1 else 's'}"


def _told(one: Unclear) -> Constraint:
    needs = f"{one.source} asks for {one.text}" if one.text else f"what {one.source} asks for"
    return make_constraint("project-unclear", "unknown", needs, one.why, source=one.source)


def _finding(name: str, value: str, source: str) -> Finding:
    return Finding(layer="python", name=name, value=value, role="required", source=source)
