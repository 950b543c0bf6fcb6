"""Manifests of Python's own: pyproject.toml, Pipfile, setup.cfg, and what setup.py says without being run."""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from panpan.python_environments.project_files import (
    Declaration,
    OwnName,
    PackageRequirement,
    ProjectFiles,
    PythonRequirement,
    Unclear,
)
from panpan.python_environments.requirement_files import file_requirements
from panpan.types.pattern import compile_late

_NUMBERS = compile_late(r"([~^]?)\s*(\d{1,9}(?:\.\d{1,9}){0,3})")
_OPERATOR = compile_late(r"([<>=!~]=?=?)(.+)")
_PLACES = ("git", "url", "path", "file")


def poetry_requirements(name: str, said: object) -> Sequence[str | None]:
    """Return a requirement, or one for each way in which it is asked for; None in place of what is not understood.

    `said`: the value of its key: versions, a table, or a list of tables.
    """
    ways = said if isinstance(said, list) else [said]
    return [_requirement(name, way if isinstance(way, dict) else {"version": way}) for way in ways]


def poetry_range(said: object) -> str | None:
    """Return a range; empty if any version will do, None if it is not understood."""
    if not isinstance(said, str) or "|" in said:
        return None
    parts = [_range(part.strip()) for part in said.split(",")]
    return None if None in parts else ",".join(filter(None, parts))


def _requirement(name: str, way: Mapping[str, Any]) -> str | None:
    is_place = any(key in way for key in _PLACES)
    spec, python = poetry_range("" if is_place else way.get("version")), poetry_range(way.get("python", ""))
    if spec is None or python is None:
        return None
    extras, markers, platform = way.get("extras"), way.get("markers"), way.get("platform")
    listed = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) and extras else ""
    conditions = [f"({markers})"] if isinstance(markers, str) else []
    conditions += [f"sys_platform == '{platform}'"] if isinstance(platform, str) else []
    conditions += [
        f"python_full_version {match[1]} '{match[2]}'" for part in python.split(",") if (match := _OPERATOR.match(part))
    ]
    return f"{name}{listed}{spec}" + (f"; {' and '.join(conditions)}" if conditions else "")


def _range(part: str) -> str | None:
    if part in ("", "*"):
        return ""
    if part.startswith(("<", ">", "==", "!=", "~=")):
        return part.replace(" ", "")
    match = _NUMBERS.fullmatch(part.removeprefix("="))
    if match is None:
        return f"=={part}" if part.endswith(".*") else None
    kind, version = match[1], match[2]
    return f">={version},<{_next(version, is_caret=kind == '^')}" if kind else f"=={version}"


def _next(version: str, *, is_caret: bool) -> str:
    """Return the first version that is too new: `^` keeps the first number that is not 0, `~` the first two."""
    numbers = [int(number) for number in version.split(".")]
    if is_caret:
        kept = next((at for at, number in enumerate(numbers) if number), len(numbers) - 1)
    else:
        kept = min(1, len(numbers) - 1)
    return ".".join(map(str, [*numbers[:kept], numbers[kept] + 1]))


def table_of(said: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """Return the table below these keys; an empty one where there is none."""
    found: Any = said
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def word_in(said: Mapping[str, Any], key: str) -> str:
    """Return the text behind a key; empty if there is none."""
    value = said.get(key)
    return value if isinstance(value, str) else ""


def texts_in(value: object) -> Sequence[str]:
    """Return the texts in a list; none if it is not a list."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


FILE = "pyproject.toml"
_QUOTED = compile_late(r"'([^'\n]+)'|\"([^\"\n]+)\"")


def pyproject_requirements(files: ProjectFiles, text: str, manifest: Mapping[str, Any]) -> Iterator[Declaration]:
    """Yield what the manifest says."""
    lines = _lines_of_texts(text)
    yield from _project(table_of(manifest, "project"), lines)
    yield from _made_by_setuptools(files, manifest)
    for group, members in table_of(manifest, "dependency-groups").items():
        yield from _optional(members, f"group {group}", lines)
    yield from _poetry(table_of(manifest, "tool", "poetry"))


def _project(project: Mapping[str, Any], lines: Mapping[str, int]) -> Iterator[Declaration]:
    yield OwnName(word_in(project, "name"))
    if asked := word_in(project, "requires-python"):
        yield PythonRequirement(asked, _at(asked, lines))
    for text in texts_in(project.get("dependencies")):
        yield PackageRequirement(text, _at(text, lines))
    for extra, members in table_of(project, "optional-dependencies").items():
        yield from _optional(members, f"extra {extra}", lines)


def _made_by_setuptools(files: ProjectFiles, manifest: Mapping[str, Any]) -> Iterator[Declaration]:
    """Yield what a build fills in ("Dynamic metadata", setuptools' documentation)."""
    if "dependencies" not in texts_in(table_of(manifest, "project").get("dynamic")):
        return
    said = table_of(manifest, "tool", "setuptools", "dynamic", "dependencies").get("file")
    names = texts_in([said] if isinstance(said, str) else said)
    for name in names:
        yield from file_requirements(files, name)
    if not (names or files.has("setup.py") or files.has("setup.cfg")):
        yield Unclear(FILE, "they are found out when it is built", "dependencies")


def _optional(members: object, group: str, lines: Mapping[str, int]) -> Iterator[PackageRequirement]:
    return (PackageRequirement(text, _at(text, lines), group=group) for text in texts_in(members))


def _poetry(poetry: Mapping[str, Any]) -> Iterator[Declaration]:
    yield OwnName(word_in(poetry, "name"))
    for name, said in table_of(poetry, "dependencies").items():
        if name.lower() == "python":
            spec = poetry_range(said)
            yield _unclear(name, said) if spec is None else PythonRequirement(spec, FILE)
            continue
        is_optional = isinstance(said, dict) and said.get("optional") is True
        for text in poetry_requirements(name, said):
            yield (
                _unclear(name, said)
                if text is None
                else PackageRequirement(text, FILE, group="an extra" if is_optional else "")
            )


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


_OWN = (".", "./")


def pipfile_requirements(pipfile: Mapping[str, Any], source: str) -> Iterator[Declaration]:
    """Yield what the manifest says; its categories beside the usual one are groups, which nobody has to install."""
    requires = table_of(pipfile, "requires")
    if whole := word_in(requires, "python_full_version"):
        yield PythonRequirement(f"=={whole}", source)
    elif minor := word_in(requires, "python_version"):
        yield PythonRequirement(f"=={minor}.*", source)
    for table, packages in pipfile.items():
        if table not in _NO_CATEGORIES and isinstance(packages, dict):
            yield from _packages(packages, source, "" if table == "packages" else f"group {table}")


_NO_CATEGORIES = frozenset(("requires", "pipenv", "scripts", "source"))


def _packages(packages: Mapping[str, Any], source: str, group: str) -> Iterator[Declaration]:
    for name, said in packages.items():
        if isinstance(said, dict) and said.get("path") in _OWN:
            continue
        for text in poetry_requirements(name, said):
            if text is not None:
                yield PackageRequirement(text, source, group=group)
            elif not group:
                yield Unclear(source, "these versions are not understood", f"{name} {said}")


def setup_cfg_requirements(files: ProjectFiles) -> Iterator[Declaration]:
    """Yield what setup.cfg says ("Configuring setuptools using setup.cfg files", setuptools' documentation)."""
    from configparser import Error, RawConfigParser

    text = files.text("setup.cfg")
    if text is None:
        return
    parser = RawConfigParser()
    try:
        parser.read_string(re.sub(r"[ \t]+", " ", text))  # it takes quadratic time for many blanks
    except (Error, RecursionError):
        yield Unclear("setup.cfg", "it cannot be understood")
        return
    yield OwnName(parser.get("metadata", "name", fallback=""))
    if asked := parser.get("options", "python_requires", fallback=""):
        yield PythonRequirement(asked, "setup.cfg")
    yield from _listed(files, parser.get("options", "install_requires", fallback=""))
    extras = parser.items("options.extras_require") if parser.has_section("options.extras_require") else []
    for extra, written in extras:
        for line in _lines(written):
            yield PackageRequirement(line, "setup.cfg", group=f"extra {extra}")


def setup_py_requirements(files: ProjectFiles) -> Iterator[Declaration]:
    """Yield the arguments of the call of `setup`, as far as they are literals or names for literals."""
    text = files.text("setup.py")
    if text is None:
        return
    try:
        with warnings.catch_warnings():  # warnings about escapes in strings would be printed
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield Unclear("setup.py", "it cannot be understood")
        return
    said = _arguments(tree)
    for key in ("name", "python_requires", "install_requires"):
        if key in said:
            yield from _of_argument(key, said[key])


def _listed(files: ProjectFiles, written: str) -> Iterator[PackageRequirement | Unclear]:
    if not written.startswith("file:"):
        yield from (PackageRequirement(line, "setup.cfg") for line in _lines(written))
        return
    for name in written.removeprefix("file:").split(","):
        yield from file_requirements(files, name.strip())


def _lines(written: str) -> list[str]:
    """Return the items of a list: each on a line of its own, or all on one and parted by semicolons."""
    parts = written.splitlines() if "\n" in written else written.split(";")
    bare = (part.split(" #")[0].strip() for part in parts)
    return [part for part in bare if part and not part.startswith("#")]


def _arguments(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Return the arguments of `setup`, with names of the module replaced by their values."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_setup(node.func):
            found |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    return {key: named.get(value.id, value) if isinstance(value, ast.Name) else value for key, value in found.items()}


def _is_setup(called: ast.expr) -> bool:
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "setup"


def _of_argument(key: str, value: ast.expr) -> Iterator[Declaration]:
    source = f"setup.py:{value.lineno}"
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    for item in items:
        text = item.value if isinstance(item, ast.Constant) else None
        if not isinstance(text, str):
            yield Unclear(source, "it is found out by a program, which is not run", key)
        elif key == "name":
            yield OwnName(text)
        elif key == "python_requires":
            yield PythonRequirement(text, source)
        else:
            yield PackageRequirement(text, f"setup.py:{item.lineno}")
