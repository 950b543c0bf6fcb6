"""What an environment.yml of conda or a manifest of pixi asks for.

Names and versions are all that is wanted; what says more, or is written in another way, is unclear.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from panpan.python_environments.project.project_files import OwnName, ProjectFiles, PythonWish, Said, Unclear, Wish
from panpan.python_environments.project.pyproject_wishes import table_of, word_in
from panpan.python_environments.project.requirement_wishes import CONSTRAINT, NESTED, requirement_wishes, wish_of
from panpan.system.text.front_matter import Node, YamlError, read_yaml

CONDA_FILES = ("environment.yml", "environment.yaml")
_SPEC = re.compile(r"(?:[\w./-]+::?)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>.*)")
_FUZZY = re.compile(r"=?\s*(?P<version>\d[\w.!+]*?)(?:\.?\*)?(?:=[\w*]+)?")
_EXACT = re.compile(r"==\s*(?P<version>\d[\w.!+]*)(?:=[\w*]+)?")
_RANGE = re.compile(r"[<>!~=]=?\s*\d[\w.*+!]*(?:\s*,\s*[<>!~=]=?\s*\d[\w.*+!]*)*")
_MAX_LINE_CHARS = 1_000


def conda_wishes(files: ProjectFiles, name: str) -> Iterator[Said]:
    """Yield what a file asks for; nothing where there is none."""
    text = files.text(name) or ""
    try:
        pairs = read_yaml(text).pairs or ()
    except YamlError as error:
        line = text.split("\n")[error.line - 1].strip()
        yield Unclear(f"{name}:{error.line}", f"it cannot be read as YAML ({error})", line[:_MAX_LINE_CHARS])
        return
    for key, value in pairs:
        if key.text == "dependencies":
            yield from _items(value, name, lambda what, source: [conda_wish(what, source)], files)


def _items(node: Node, file: str, said: Callable[[str, str], Iterable[Said]], files: ProjectFiles) -> Iterator[Said]:
    """Yield what the items of a list ask for.

    Args:
        node: The list.
        file: Where it stands.
        said: Reads an item, given with its source.
        files: Those that an item may name.
    """
    if node.items is None and node.text:
        yield Unclear(f"{file}:{node.line}", "it is no list", node.text[:_MAX_LINE_CHARS])
    for item in node.items or ():
        pairs = item.pairs or ()
        if len(pairs) == 1 and pairs[0][0].text == "pip":
            yield from _items(pairs[0][1], file, partial(_of_pip, files), files)
        elif item.text:
            yield from said(item.text, f"{file}:{item.line}")


def conda_wish(what: str, source: str) -> Wish | PythonWish | Unclear:
    """Return what a specification of conda's asks for, such as `pytorch::pytorch >=2,<3`."""
    match = _SPEC.fullmatch(what) if len(what) <= _MAX_LINE_CHARS else None
    versions = _versions(match["versions"]) if match else None
    if match is None or versions is None:
        return Unclear(source, "it says more than a name and versions", what[:_MAX_LINE_CHARS])
    if match["name"].lower() == "python":
        return PythonWish(versions, source)
    return Wish(f"{match['name']}{versions}", source, is_condas=True)


def _of_pip(files: ProjectFiles, what: str, source: str) -> Iterator[Said]:
    if nested := NESTED.fullmatch(what):
        file, is_bound = source.partition(":")[0], nested["option"] in CONSTRAINT
        yield from requirement_wishes(files, nested["path"], included_by=file, is_bound=is_bound)
    elif said := wish_of(what, source):
        yield said


def _versions(text: str) -> str | None:
    """Return versions as in PEP 440; None where they are not understood."""
    if not text or text == "*":
        return ""
    if match := _EXACT.fullmatch(text):
        return f"=={match['version']}"
    if match := _FUZZY.fullmatch(text):
        return f"=={match['version'].rstrip('.')}.*"
    return text.replace(" ", "") if _RANGE.fullmatch(text) else None


def pixi_wishes(pixi: Mapping[str, Any], source: str) -> Iterator[Said]:
    """Yield what the default environment has, of conda and of Python's index; what is for one platform alone is not.

    Args:
        pixi: The manifest.
        source: The file.
    """
    yield OwnName(word_in(table_of(pixi, "workspace") or table_of(pixi, "project"), "name"))
    for name, said in table_of(pixi, "dependencies").items():
        version = _version(said)
        yield Unclear(source, "it is no version", name) if version is None else conda_wish(f"{name} {version}", source)
    for name, said in table_of(pixi, "pypi-dependencies").items():
        is_own = isinstance(said, dict) and said.get("path") in (".", "./")
        version = _version(said) or ""
        if not is_own:
            yield Wish(f"{name}{'' if version == '*' else version}", source)


def _version(said: object) -> str | None:
    version = said.get("version", "*") if isinstance(said, dict) else said
    return version if isinstance(version, str) else None
