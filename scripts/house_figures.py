"""Print figures on the structure of the code, each with its aim.

    .venv/bin/python scripts/house_figures.py [--list] [CHECKOUT]

The files are read and not imported. `tests/test_house.py` keeps each figure from getting worse.
"""

import argparse
import ast
import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=ast.AST)

TOUCHED = (
    "files that a new tool / hook / slash command / provider / setting touches",
    "1 / 1 / 1 / 2 / 1 (the examples of docs/capabilities.md)",
    "≤ 3 / 1 / 1 / 2 / 1",
)
"""Row of the table that is shown by worked examples of one file each, which `tests/test_capabilities_page.py` runs."""

ENTRY_POINTS = frozenset({"panpan.capabilities"})
"""Names of entry point groups that are also names of modules."""

FOREIGN = frozenset({"buffer", "member", "response", "params", "model_params"})
"""Names of objects of other libraries, whose attributes are set after construction."""


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    now: float
    aim: str
    more_is_better: bool = False
    note: str = ""
    """Place with the highest value, if there is one."""


@dataclass(frozen=True)
class Module:
    """A file of the package."""

    path: Path
    name: str
    text: str
    tree: ast.Module

    @cached_property
    def _nodes(self) -> Mapping[type[ast.AST], list[ast.AST]]:
        nodes = defaultdict[type[ast.AST], list[ast.AST]](list)
        for node in ast.walk(self.tree):
            nodes[type(node)].append(node)
        return nodes

    def all_of(self, kind: type[NodeT]) -> Sequence[NodeT]:
        """Return every node of a type, at any depth."""
        return self._nodes.get(kind, ())  # type: ignore[return-value]

    @property
    def functions(self) -> Sequence[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method, at any depth."""
        return [*self.all_of(ast.FunctionDef), *self.all_of(ast.AsyncFunctionDef)]

    @property
    def code_lines(self) -> int:
        """Lines of code: without blank lines, comments, docstrings and strings that describe an attribute."""
        strings = [
            range(node.lineno, (node.end_lineno or node.lineno) + 1)
            for node in self.all_of(ast.Expr)
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        ]
        silent = {line for lines in strings for line in lines}
        return sum(
            line not in silent and bool(text.strip()) and not text.lstrip().startswith("#")
            for line, text in enumerate(self.text.splitlines(), 1)
        )


class Package:
    """Modules of a package and the imports between them.

    Args:
        root: The checkout, with `pyproject.toml` and the folder of the package.
        name: The package.
    """

    def __init__(self, root: Path, name: str = "panpan") -> None:
        self.root, self.name = root, name
        self.modules = [self._module(path) for path in sorted((root / name).rglob("*.py"))]
        self._names = {module.name for module in self.modules}

    def _module(self, path: Path) -> Module:
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(self.root).with_suffix("").parts
        return Module(path, ".".join(parts).removesuffix(".__init__"), text, ast.parse(text))

    def imports(self, *, for_types: bool) -> Iterator[tuple[str, str]]:
        """Yield pairs of modules, each once: the first imports the second, or names it in a string to import it later.

        Args:
            for_types: True to include imports under `if TYPE_CHECKING:`.
        """
        for module in self.modules:
            hidden = set() if for_types else _for_types_only(module)
            statements: list[ast.ImportFrom | ast.Import] = [*module.all_of(ast.ImportFrom), *module.all_of(ast.Import)]
            found = {name for node in statements if id(node) not in hidden for name in self._imported(node)}
            found |= {name for node in module.all_of(ast.Constant) for name in self._named(node)}
            yield from ((module.name, name) for name in sorted(found & self._names - {module.name}))

    def _imported(self, node: ast.ImportFrom | ast.Import) -> Iterator[str]:
        for alias in node.names:
            if isinstance(node, ast.Import):
                yield alias.name
            else:
                full = f"{node.module}.{alias.name}"
                yield full if full in self._names else node.module or ""

    def _named(self, node: ast.Constant) -> Iterator[str]:
        is_name = isinstance(node.value, str) and node.value not in ENTRY_POINTS
        if is_name and isinstance(node.value, str) and node.value.startswith(f"{self.name}."):
            yield node.value.partition(":")[0]

    @cached_property
    def capabilities(self) -> Sequence[str]:
        """Names of the features that are a folder in `capabilities/`."""
        folder = self.root / self.name / "capabilities"
        return sorted(path.parent.name for path in folder.glob("*/__init__.py"))

    def feature(self, module: str) -> str | None:
        """Return the folder of `capabilities/` that a module is in; until there is one, of `services/` or `tools/`."""
        houses = ("capabilities",) if self.capabilities else ("services", "tools")
        _, *rest = module.split(".")
        is_folder = len(rest) > 2 or (self.root / self.name).joinpath(*rest[:2], "__init__.py").is_file()
        return ".".join(rest[:2]) if len(rest) > 1 and rest[0] in houses and is_folder else None


def _for_types_only(module: Module) -> set[int]:
    """Return ids of the nodes that only a type checker sees."""
    return {
        id(inner)
        for node in module.all_of(ast.If)
        if _last_name(node.test) == "TYPE_CHECKING"
        for child in node.body
        for inner in ast.walk(child)
    }


def deletable_names(package: Package) -> Sequence[str]:
    """Return the capabilities that nothing outside of their folders imports, except in `app.py` and for types."""
    used = {
        package.feature(imported)
        for importer, imported in package.imports(for_types=False)
        if package.feature(importer) != package.feature(imported) and importer != f"{package.name}.app"
    }
    return [name for name in package.capabilities if f"capabilities.{name}" not in used]


def deletable(package: Package) -> int:
    """Return the number of such capabilities; `tests/test_deleted_capabilities.py` deletes each."""
    return len(deletable_names(package))


def between_features(package: Package) -> Sequence[tuple[str, str]]:
    """Return pairs of modules of different features, the first of which imports the second, other than for types.

    A feature is a folder in `capabilities/`. Until there is such a folder, it is a folder in `services/` or `tools/`.
    """

    def is_between(importer: str | None, imported: str | None) -> bool:
        return importer is not None and imported is not None and importer != imported

    pairs = package.imports(for_types=False)
    return [(one, other) for one, other in pairs if is_between(package.feature(one), package.feature(other))]


def upward(package: Package) -> Sequence[tuple[str, str]]:
    """Return pairs of modules, the first of which imports the second from a layer above or beside its own.

    The layers are those of import-linter, which finds imports. A module that is named in a string and imported later
    also counts.
    """
    settings = tomllib.loads((package.root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    height = {name.strip(): -row for row, layer in enumerate(layers) for name in layer.split("|")}

    def is_upward(importer: str, imported: str) -> bool:
        low, high = (".".join(name.split(".")[:2]) for name in (importer, imported))
        return low in height and high in height and low != high and height[high] >= height[low]

    return [pair for pair in package.imports(for_types=True) if is_upward(*pair)]


def folder_size(package: Package) -> int:
    """Return the 90th percentile of the number of Python files in a folder."""
    sizes = sorted(Counter(module.path.parent for module in package.modules).values())
    return sizes[math.ceil(0.9 * len(sizes)) - 1]


def most_parameters(package: Package) -> tuple[int, str]:
    """Return the most parameters of a function or constructor, and its name.

    A dataclass counts with the most arguments of one call: many optional fields do not burden its callers.
    """
    written = [
        (_parameters(node), _label(module, node.name)) for module in package.modules for node in module.functions
    ]
    records = {
        cls.name
        for module in package.modules
        for cls in module.all_of(ast.ClassDef)
        if "dataclass" in map(_last_name, cls.decorator_list)
    }
    given = (
        (len(node.args) + len(node.keywords), _label(module, node.func.id))
        for module in package.modules
        for node in module.all_of(ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id in records
    )
    return max((*written, *given), default=(0, ""))


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    written = function.args
    names = [arg.arg for arg in (*written.posonlyargs, *written.args, *written.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _label(module: Module, name: str) -> str:
    return f"{name} in {module.path.name}"


def set_later(package: Package) -> Mapping[str, Sequence[str]]:
    """Return the attributes that are set on another object after its construction, with the places that do it.

    An assignment `x.y = …` counts if `x` is not `self` or `cls`, and `y` is an attribute of a class in another module
    of the package. In the module of its class, it is how the module keeps its own records. An attribute with a setter
    does not count, since the assignment is a call. Each name counts once.
    """
    own = {module.name: set(_attributes(module)) for module in package.modules}
    known = set().union(*own.values()) - {name for module in package.modules for name in _setters(module)}
    found: dict[str, list[str]] = {}
    for module in package.modules:
        for node in _stores(module):
            is_other = not _is_self(node.value) and _last_name(node.value) not in FOREIGN
            if is_other and node.attr in known and node.attr not in own[module.name]:
                found.setdefault(node.attr, []).append(f"{module.path.relative_to(package.root)}:{node.lineno}")
    return found


def _stores(module: Module) -> Iterator[ast.Attribute]:
    return (node for node in module.all_of(ast.Attribute) if isinstance(node.ctx, ast.Store))


def _attributes(module: Module) -> Iterator[str]:
    """Yield the attributes of the classes of a module."""
    yield from (node.attr for node in _stores(module) if _is_self(node.value))
    for cls in module.all_of(ast.ClassDef):
        for node in cls.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id


def _setters(module: Module) -> Iterator[str]:
    functions = module.all_of(ast.FunctionDef)
    return (node.name for node in functions if "setter" in map(_last_name, node.decorator_list))


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def _last_name(node: ast.AST) -> str:
    """Return `c` for `c`, `b.c` and a call of either."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return _last_name(function)
        case _:
            return ""


def figures(root: Path, name: str = "panpan") -> Sequence[Figure]:
    """Return the figures of a checkout."""
    package = Package(root, name)
    files = len(package.modules)
    parameters, function = most_parameters(package)
    return (
        Figure("capabilities whose folder can be deleted", deletable(package), "all but files, search, shell", True),
        Figure("imports between features", len(between_features(package)), "0"),
        Figure("imports upward", len(upward(package)), "0"),
        Figure("lines of code a file", sum(module.code_lines for module in package.modules) / files, "≥ 110", True),
        Figure("files", files, "≤ 500"),
        Figure("lines", sum(len(module.text.splitlines()) for module in package.modules), "≤ 90,000"),
        Figure("files in one folder, 90th percentile", folder_size(package), "≤ 15"),
        Figure("most parameters", parameters, "≤ 8", note=function),
        Figure("attributes set on another object", len(set_later(package)), "0"),
    )


def table(root: Path) -> str:
    """Return the figures of a checkout as Markdown."""
    rows = [
        (figure.name, f"{round(figure.now, 1):,}" + (f" ({figure.note})" if figure.note else ""), figure.aim)
        for figure in figures(root)
    ]
    rows = [("figure", "now", "aim"), ("---", "---", "---"), *rows, TOUCHED]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def details(root: Path) -> str:
    """Return the things that three of the figures count, one per line."""
    package = Package(root)
    return "\n".join(
        (
            *(f"between features: {one} imports {other}" for one, other in between_features(package)),
            *(f"upward: {one} imports {other}" for one, other in upward(package)),
            *(f"set on another object: {name} in {', '.join(at)}" for name, at in sorted(set_later(package).items())),
        )
    )


def main() -> None:
    """Print the table, or the things that it counts."""
    parser = argparse.ArgumentParser(description="Print how the code is laid out, in figures, each with its aim.")
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parents[1])
    parser.add_argument("--list", action="store_true", help="print the imports and attributes that count instead")
    args = parser.parse_args()
    print((details if args.list else table)(args.checkout))  # noqa: T201


if __name__ == "__main__":
    main()
