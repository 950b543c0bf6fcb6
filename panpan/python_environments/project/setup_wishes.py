"""What setuptools' older manifests ask for: setup.cfg, and setup.py as far as it can be read without running it."""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping

from panpan.python_environments.project.project_files import OwnName, ProjectFiles, PythonWish, Said, Unclear, Wish
from panpan.python_environments.project.requirement_wishes import requirement_wishes


def setup_cfg_wishes(files: ProjectFiles) -> Iterator[Said]:
    """Yield what setup.cfg says ("Configuring setuptools using setup.cfg files", setuptools' documentation)."""
    from configparser import Error, RawConfigParser

    text = files.text("setup.cfg")
    if text is None:
        return
    parser = RawConfigParser()
    try:
        parser.read_string(re.sub(r"[ \t]+", " ", text))  # of many blanks it takes the square
    except (Error, RecursionError):
        yield Unclear("setup.cfg", "it cannot be understood")
        return
    yield OwnName(parser.get("metadata", "name", fallback=""))
    if asked := parser.get("options", "python_requires", fallback=""):
        yield PythonWish(asked, "setup.cfg")
    yield from _listed(files, parser.get("options", "install_requires", fallback=""))
    extras = parser.items("options.extras_require") if parser.has_section("options.extras_require") else []
    for extra, written in extras:
        for line in _lines(written):
            yield Wish(line, "setup.cfg", group=f"extra {extra}")


def setup_py_wishes(files: ProjectFiles) -> Iterator[Said]:
    """Yield what the call of `setup` says in literals, or by names that stand for some."""
    text = files.text("setup.py")
    if text is None:
        return
    try:
        with warnings.catch_warnings():  # about escapes in strings, which would be printed
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield Unclear("setup.py", "it cannot be understood")
        return
    said = _arguments(tree)
    for key in ("name", "python_requires", "install_requires"):
        if key in said:
            yield from _of_argument(key, said[key])


def _listed(files: ProjectFiles, written: str) -> Iterator[Wish | Unclear]:
    if not written.startswith("file:"):
        yield from (Wish(line, "setup.cfg") for line in _lines(written))
        return
    for name in written.removeprefix("file:").split(","):
        yield from requirement_wishes(files, name.strip())


def _lines(written: str) -> list[str]:
    """Return the items of a list: each on a line of its own, or all on one and parted by semicolons."""
    parts = written.splitlines() if "\n" in written else written.split(";")
    bare = (part.split(" #")[0].strip() for part in parts)
    return [part for part in bare if part and not part.startswith("#")]


def _arguments(tree: ast.Module) -> Mapping[str, ast.expr]:
    """Return what `setup` is called with, names of the module replaced by what they stand for."""
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


def _of_argument(key: str, value: ast.expr) -> Iterator[Said]:
    source = f"setup.py:{value.lineno}"
    items = value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    for item in items:
        text = item.value if isinstance(item, ast.Constant) else None
        if not isinstance(text, str):
            yield Unclear(source, "it is found out by a program, which is not run", key)
        elif key == "name":
            yield OwnName(text)
        elif key == "python_requires":
            yield PythonWish(text, source)
        else:
            yield Wish(text, f"setup.py:{item.lineno}")
