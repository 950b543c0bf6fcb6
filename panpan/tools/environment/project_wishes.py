"""What a project asks for of its environment, as its manifests say.

The rule: they are files of strangers. They are read below the project's folder alone, as text, and nothing of them is
run; what cannot be understood is named, and never taken for met.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from panpan.tools.environment.conda_wishes import conda_wishes
from panpan.tools.environment.machine_root import MachineRoot
from panpan.tools.environment.metadata import normalised
from panpan.tools.environment.poetry_versions import poetry_range, poetry_requirement
from panpan.tools.environment.requirement_lines import NESTED, requirement_lines, without_hashes
from panpan.tools.environment.wish import PythonWish, Unclear, Wish
from panpan.types.dataclass import dataclass

MAX_WISHES = 2_000
MAX_FILES = 20
"""Of requirements, one that includes others."""
_MAX_BYTES = 1_000_000
_CONDA_FILES = ("environment.yml", "environment.yaml")


@dataclass(frozen=True, slots=True)
class ProjectWishes:
    """All that is asked for, in the order of the files."""

    folder: str
    name: str = ""
    """That of the project itself, normalised; empty where nobody says."""
    python: tuple[PythonWish, ...] = ()
    packages: tuple[Wish, ...] = ()
    unclear: tuple[Unclear, ...] = ()


def project_wishes(root: MachineRoot, folder: str) -> ProjectWishes:
    """Return what the project in a folder asks for.

    Args:
        root: The machine.
        folder: Absolute; nothing outside of it is read.
    """
    reading = _Reading(root, folder.rstrip("/"))
    reading.pyproject()
    reading.setup_cfg()
    reading.setup_py()
    if root.exists(f"{reading.folder}/requirements.txt"):
        reading.requirements("requirements.txt")
    reading.conda()
    return reading.wishes()


@dataclass(slots=True)
class _Reading:
    root: MachineRoot
    folder: str
    name: str = ""
    found: list[Wish | PythonWish | Unclear] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def wishes(self) -> ProjectWishes:
        found = self.found[:MAX_WISHES]
        if len(self.found) > MAX_WISHES:
            found.append(Unclear(self.folder, f"what it asks for beyond the first {MAX_WISHES:,} lines"))
        return ProjectWishes(
            self.folder,
            normalised(self.name),
            tuple(one for one in found if isinstance(one, PythonWish)),
            tuple(one for one in found if isinstance(one, Wish)),
            tuple(one for one in found if isinstance(one, Unclear)),
        )

    def pyproject(self) -> None:
        import tomllib

        text = self._text("pyproject.toml")
        if text is None:
            return
        try:
            manifest = tomllib.loads(text)
        except (ValueError, RecursionError):
            self.found.append(Unclear("pyproject.toml", "what it says: it is no TOML, or too large"))
            return
        self._project_table(_table(manifest, "project"), _table(manifest, "tool", "setuptools", "dynamic"))
        self._poetry(_table(manifest, "tool", "poetry"))

    def _project_table(self, project: Mapping[str, Any], made_of: Mapping[str, Any]) -> None:
        self.name = self.name or _word(project, "name")
        if asked := _word(project, "requires-python"):
            self.found.append(PythonWish(asked, "pyproject.toml"))
        self.found += [Wish(text, "pyproject.toml") for text in _texts(project, "dependencies")]
        if "dependencies" not in _texts(project, "dynamic"):
            return
        of_setuptools = made_of.get("dependencies")
        files = of_setuptools.get("file") if isinstance(of_setuptools, dict) else None
        names = [files] if isinstance(files, str) else files if isinstance(files, list) else []
        for name in names:
            self.requirements(str(name))
        if not names:
            self.found.append(Unclear("pyproject.toml", "its dependencies: a build makes them"))

    def _poetry(self, poetry: Mapping[str, Any]) -> None:
        self.name = self.name or _word(poetry, "name")
        for name, said in _table(poetry, "dependencies").items():
            if name.lower() == "python":
                spec = poetry_range(str(said))
                self.found.append(PythonWish(spec, "pyproject.toml") if spec is not None else _of_poetry(name, said))
            elif not (isinstance(said, dict) and said.get("optional")):
                text = poetry_requirement(name, said)
                self.found.append(Wish(text, "pyproject.toml") if text is not None else _of_poetry(name, said))

    def setup_cfg(self) -> None:
        from configparser import ConfigParser, Error

        text = self._text("setup.cfg")
        if text is None:
            return
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(text)
        except (Error, RecursionError):
            self.found.append(Unclear("setup.cfg", "what it says: it cannot be read"))
            return
        self.name = self.name or parser.get("metadata", "name", fallback="")
        if asked := parser.get("options", "python_requires", fallback=""):
            self.found.append(PythonWish(asked, "setup.cfg"))
        written = parser.get("options", "install_requires", fallback="")
        if written.startswith("file:"):
            for name in written.removeprefix("file:").split(","):
                self.requirements(name.strip())
            return
        lines = [part for line in written.splitlines() for part in line.split("#")[0].split(";;")]
        self.found += [Wish(line.strip(), "setup.cfg") for line in lines if line.strip()]

    def setup_py(self) -> None:
        """Where nothing else says what the project asks for, it may be said there."""
        if not self.found and not self.name and self.root.exists(f"{self.folder}/setup.py"):
            self.found.append(Unclear("setup.py", "what it asks for: it is a program, and is not run"))

    def requirements(self, name: str, *, is_bound: bool = False) -> None:
        """Read a file of requirements, and those that it includes."""
        place = self.root.resolve(f"{self.folder}/{name}") or ""
        if place in self.seen:
            return
        self.seen.add(place)
        text = self._text(name) if len(self.seen) <= MAX_FILES else None
        if text is None:
            self.found.append(Unclear(name, "what it asks for: it cannot be read, or lies outside the project"))
            return
        beside = name.rpartition("/")[0]
        for number, line in requirement_lines(text):
            if nested := NESTED.fullmatch(line):
                inner = f"{beside}/{nested['path']}" if beside else nested["path"]
                self.requirements(inner, is_bound=is_bound or nested["option"] in ("-c", "--constraint"))
            elif wish := _of_line(line, f"{name}:{number}", is_bound=is_bound):
                self.found.append(wish)

    def conda(self) -> None:
        """Read what conda would be given, where there is such a file."""
        for name in _CONDA_FILES:
            text = self._text(name)
            for wish in conda_wishes(text or "", name):
                if isinstance(wish, Unclear) and (nested := NESTED.fullmatch(wish.what)):
                    self.requirements(nested["path"], is_bound=nested["option"] in ("-c", "--constraint"))
                else:
                    self.found.append(wish)

    def _text(self, name: str) -> str | None:
        """Return a file of the project; None where there is none, or it lies elsewhere."""
        own, place = self.root.resolve(self.folder), self.root.resolve(f"{self.folder}/{name}")
        if own is None or place is None or not place.startswith(f"{own}/"):
            return None
        return self.root.text(place, max_bytes=_MAX_BYTES)


def _of_line(line: str, source: str, *, is_bound: bool) -> Wish | Unclear | None:
    """Return what a line of requirements asks for; None where that is no package, or the project itself."""
    if line in ("-e .", "--editable .", "."):
        return None
    is_editable = line.startswith(("-e", "--editable"))
    if line.startswith("-") and not is_editable:
        return None
    if is_editable or line.startswith(("./", "../", "/")) or ("://" in line and " @ " not in line):
        return Unclear(source, f"{line}: a place and no name")
    return Wish(without_hashes(line), source, is_bound=is_bound)


def _of_poetry(name: str, said: object) -> Unclear:
    return Unclear("pyproject.toml", f"{name} = {said}")


def _table(said: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    found: Any = said
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _word(said: Mapping[str, Any], key: str) -> str:
    value = said.get(key)
    return value if isinstance(value, str) else ""


def _texts(said: Mapping[str, Any], key: str) -> Iterator[str]:
    values = said.get(key)
    items: Iterable[Any] = values if isinstance(values, list) else ()
    return (value for value in items if isinstance(value, str))
