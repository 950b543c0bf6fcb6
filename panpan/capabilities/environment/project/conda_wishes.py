"""What an environment.yml of conda or a manifest of pixi asks for."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from panpan.capabilities.environment.project.project_files import OwnName, ProjectFiles, PythonWish, Said, Unclear, Wish
from panpan.capabilities.environment.project.pyproject_wishes import table_of, word_in
from panpan.capabilities.environment.project.requirement_wishes import (
    CONSTRAINT,
    NESTED,
    requirement_wishes,
    wish_of,
    without_comments,
)

CONDA_FILES = ("environment.yml", "environment.yaml")
_SPEC = re.compile(r"(?:[\w./-]+::?)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>.*)")
_FUZZY = re.compile(r"=?\s*(?P<version>\d[\w.!+]*?)(?:\.?\*)?(?:=[\w*]+)?")
_EXACT = re.compile(r"==\s*(?P<version>\d[\w.!+]*)(?:=[\w*]+)?")
_RANGE = re.compile(r"[<>!~=]=?\s*\d[\w.*+!]*(?:\s*,\s*[<>!~=]=?\s*\d[\w.*+!]*)*")
_MAX_LINE_CHARS = 1_000


def conda_wishes(files: ProjectFiles, name: str) -> Iterator[Said]:
    """Yield what a file asks for; nothing where there is none."""
    is_inside, of_pip = False, -1
    lines = (files.text(name) or "").splitlines()
    for number, line in without_comments(enumerate(lines, 1)):
        source = f"{name}:{number}"
        indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
        if not line.startswith("-"):
            key, _, value = line.partition(":")
            is_inside = key.strip() == "dependencies" if not indent else is_inside
            if is_inside and value.strip():
                yield Unclear(source, "it is not written with an item on each line", line[:_MAX_LINE_CHARS])
            continue
        if not is_inside:
            continue
        what = line[1:].strip().strip("\"'")
        if what.replace(" ", "") == "pip:":
            of_pip = indent
        elif 0 <= of_pip < indent:
            yield from _of_pip(files, what, source)
        else:
            of_pip = -1
            yield conda_wish(what, source)


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
