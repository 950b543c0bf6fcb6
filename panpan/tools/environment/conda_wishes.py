"""What an environment.yml of conda asks for ("Creating an environment file manually", conda's documentation).

It is read by its lines and not as YAML: names and versions are all that is wanted, and a line that says more, or is
written in another way, is unclear.
"""

import re
from collections.abc import Iterator

from panpan.tools.environment.requirement_lines import without_comments
from panpan.tools.environment.wish import PythonWish, Unclear, Wish

_SPEC = re.compile(r"(?:[\w./-]+::?)?(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>.*)")
_FUZZY = re.compile(r"=?\s*(?P<version>\d[\w.!+]*?)(?:\.?\*)?(?:=[\w*]+)?")
_EXACT = re.compile(r"==\s*(?P<version>\d[\w.!+]*)(?:=[\w*]+)?")
_RANGE = re.compile(r"[<>!~=]=?\s*\d[\w.*+!]*(?:\s*,\s*[<>!~=]=?\s*\d[\w.*+!]*)*")


def conda_wishes(text: str, source: str) -> Iterator[Wish | PythonWish | Unclear]:
    """Yield what a file asks for, with `source` and the number of the line as its place."""
    is_inside, of_pip = False, -1
    lines = text.splitlines()
    for number, line in without_comments(enumerate(lines, 1)):
        place = f"{source}:{number}"
        indent = len(lines[number - 1]) - len(lines[number - 1].lstrip())
        if not line.startswith("-"):
            is_inside = is_inside if indent else line.replace(" ", "") == "dependencies:"
            continue
        if not is_inside:
            continue
        what = line[1:].strip().strip("\"'")
        if what.replace(" ", "") == "pip:":
            of_pip = indent
        elif 0 <= of_pip < indent:
            yield Unclear(place, what) if what.startswith("-") else Wish(what, place)
        else:
            of_pip = -1
            yield _of_conda(what, place)


def _of_conda(what: str, place: str) -> Wish | PythonWish | Unclear:
    match = _SPEC.fullmatch(what)
    versions = _versions(match["versions"]) if match else None
    if match is None or versions is None:
        return Unclear(place, what)
    if match["name"].lower() == "python":
        return PythonWish(versions, place)
    return Wish(f"{match['name']}{versions}", place, is_condas=True)


def _versions(text: str) -> str | None:
    """Return versions as in PEP 440; None where they are not understood."""
    if not text or text == "*":
        return ""
    if match := _EXACT.fullmatch(text):
        return f"=={match['version']}"
    if match := _FUZZY.fullmatch(text):
        return f"=={match['version'].rstrip('.')}.*"
    return text.replace(" ", "") if _RANGE.fullmatch(text) else None
