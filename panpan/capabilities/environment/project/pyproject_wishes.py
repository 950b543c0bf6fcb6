"""What pyproject.toml asks for: the project's own table (PEP 621), groups (PEP 735), and the table of Poetry."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from panpan.capabilities.environment.project.poetry_versions import poetry_range, poetry_requirements
from panpan.capabilities.environment.project.project_files import ProjectFiles
from panpan.capabilities.environment.project.requirement_wishes import requirement_wishes
from panpan.capabilities.environment.project.toml_tables import table_of, texts_in, word_in
from panpan.capabilities.environment.project.wish import OwnName, PythonWish, Said, Unclear, Wish

FILE = "pyproject.toml"
_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"")


def pyproject_wishes(files: ProjectFiles, text: str, manifest: Mapping[str, Any]) -> Iterator[Said]:
    """Yield what the manifest says.

    Args:
        files: The project.
        text: The manifest.
        manifest: The same, read.
    """
    lines = _lines_of_texts(text)
    yield from _project(table_of(manifest, "project"), lines)
    yield from _made_by_setuptools(files, manifest)
    for group, members in table_of(manifest, "dependency-groups").items():
        yield from _optional(members, f"group {group}", lines)
    yield from _poetry(table_of(manifest, "tool", "poetry"))


def _project(project: Mapping[str, Any], lines: Mapping[str, int]) -> Iterator[Said]:
    yield OwnName(word_in(project, "name"))
    if asked := word_in(project, "requires-python"):
        yield PythonWish(asked, _at(asked, lines))
    for text in texts_in(project.get("dependencies")):
        yield Wish(text, _at(text, lines))
    for extra, members in table_of(project, "optional-dependencies").items():
        yield from _optional(members, f"extra {extra}", lines)


def _made_by_setuptools(files: ProjectFiles, manifest: Mapping[str, Any]) -> Iterator[Said]:
    """Yield what a build fills in ("Dynamic metadata", setuptools' documentation)."""
    if "dependencies" not in texts_in(table_of(manifest, "project").get("dynamic")):
        return
    said = table_of(manifest, "tool", "setuptools", "dynamic", "dependencies").get("file")
    names = texts_in([said] if isinstance(said, str) else said)
    for name in names:
        yield from requirement_wishes(files, name)
    if not (names or files.has("setup.py") or files.has("setup.cfg")):
        yield Unclear(FILE, "they are found out when it is built", "dependencies")


def _optional(members: object, group: str, lines: Mapping[str, int]) -> Iterator[Wish]:
    return (Wish(text, _at(text, lines), group=group) for text in texts_in(members))


def _poetry(poetry: Mapping[str, Any]) -> Iterator[Said]:
    yield OwnName(word_in(poetry, "name"))
    for name, said in table_of(poetry, "dependencies").items():
        if name.lower() == "python":
            spec = poetry_range(said)
            yield _unclear(name, said) if spec is None else PythonWish(spec, FILE)
            continue
        is_optional = isinstance(said, dict) and said.get("optional") is True
        for text in poetry_requirements(name, said):
            yield _unclear(name, said) if text is None else Wish(text, FILE, group="an extra" if is_optional else "")


def _unclear(name: str, said: object) -> Unclear:
    return Unclear(FILE, "these versions are not understood", f"{name} {said}")


def _lines_of_texts(text: str) -> Mapping[str, int]:
    """Return the line of each text in quotation marks, the first one that has it."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        for match in _QUOTED.finditer(line):
            found.setdefault(match[1] or match[2], number)
    return found


def _at(text: str, lines: Mapping[str, int]) -> str:
    return f"{FILE}:{lines[text]}" if text in lines else FILE
