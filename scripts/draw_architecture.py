"""Draw the pictures of docs/architecture.md in docs/images/: layers, modules and environment, each an SVG.

    .venv/bin/python scripts/draw_architecture.py

Their contents come from the code: the contract of the layers in `pyproject.toml`, the docstrings of the folders, their
imports and sizes, and the layers that EnvDoctor knows. A test draws them again and compares.
"""

import ast
import re
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from panpan.capabilities.environment.layers import (  # noqa: E402
    ADVICE,
    LAYERS,
)
from scripts.house_figures import Package, between_features, upward  # noqa: E402

IMAGES = Path("docs", "images")
KEPT = 0.1
"""Share by which a folder may grow or shrink before the picture changes its number of lines."""
WIDTH, ROW, BAR = 900, 30, 80
LEFT, GRID = 30, 360
"""Left edges of the names and of the imports."""

STYLE = """
    svg { color-scheme: light dark; font: 14px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
    .page { fill: #ffffff; stroke: #d0d7de }
    text { fill: #1f2328 } .quiet { fill: #59636e; font-size: 13px } .name { font-weight: 600 }
    .box { fill: #f0f4f8; stroke: #b6c2cf } .bar { fill: #b6c2cf } .self { fill: #e4e9ee }
    .grid { stroke: #e4e9ee } .line { stroke: #59636e; stroke-width: 1.5; fill: none } .tip { fill: #59636e }
    .down { fill: #1f6feb } .up { fill: #d1570a } text.up { font-size: 13px }
    @media (prefers-color-scheme: dark) {
      .page { fill: #151b23; stroke: #3d444d }
      text { fill: #e6edf3 } .quiet { fill: #9aa5b1 }
      .box { fill: #212a35; stroke: #465260 } .bar { fill: #465260 } .self { fill: #2a333e }
      .grid { stroke: #2a333e } .line { stroke: #9aa5b1 } .tip { fill: #9aa5b1 }
      .down { fill: #58a6ff } .up { fill: #f0883e }
    }
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start", more: str = "") -> str:
    """Return one line of text; `kind` is its class in `STYLE`."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "box", radius: float = 5) -> str:
    """Return a rectangle; `kind` is its class in `STYLE`."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" class="{kind}"/>'


def arrow(x: float, start: float, end: float) -> str:
    """Return a vertical arrow from one height to another."""
    back = 9 if end > start else -9
    return (
        f'<path class="line" d="M{x:g} {start:g}V{end - back:g}"/><path class="tip" d="M{x:g} {end:g}l-5 {-back}h10z"/>'
    )


def sideways(x: float, y: float, words: str) -> str:
    """Return quiet text that runs upward along an arrow."""
    return text(x, y, words, "quiet", "middle", f' transform="rotate(-90 {x:g} {y:g})"')


def picture(title: str, height: float, parts: Sequence[str]) -> str:
    """Return the whole SVG, on a page of its own colour, so that it reads in light and dark."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" role="img">',
        f"<title>{escape(title)}</title>",
        "<!-- made by scripts/draw_architecture.py -->",
        f"<style>{STYLE}</style>",
        box(0.5, 0.5, WIDTH - 1, height - 1, "page", 8),
    )
    return "\n".join((*head, *parts, "</svg>", ""))


def layers_of(root: Path) -> Sequence[Sequence[str]]:
    """Return the layers of the contract from the top to the bottom, each with the names of its modules."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[name.strip().partition(".")[2] for name in layer.split("|")] for layer in layers]


def purpose(root: Path, name: str, most_chars: int = 84) -> str:
    """Return the first sentence of the docstring of a module of the package, as far as it fits a row."""
    path = root / "panpan" / name
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return textwrap.shorten(re.split(r"\.(?:\s|$)", docstring, maxsplit=1)[0], most_chars, placeholder=" …")


def label(root: Path, name: str) -> str:
    """Return `cli/` for a folder and `app.py` for a file."""
    return f"{name}/" if (root / "panpan" / name).is_dir() else f"{name}.py"


def draw_layers(root: Path) -> str:
    """Draw the layers on top of each other, each with its purpose."""
    layers, left, width, top = layers_of(root), 60, WIDTH - 120, 20
    parts = []
    y = top
    for layer in layers:
        height = 22 * len(layer) + 14
        parts.append(box(left, y, width, height))
        for row, name in enumerate(layer):
            parts.append(text(left + 14, y + 23 + 22 * row, label(root, name), "name"))
            parts.append(text(left + 200, y + 23 + 22 * row, purpose(root, name), "quiet"))
        y += height + 8
    bottom = y - 8
    parts += [arrow(38, top, bottom), sideways(24, (top + bottom) / 2, "imports and prompts go down")]
    parts += [arrow(WIDTH - 38, bottom, top), sideways(WIDTH - 16, (top + bottom) / 2, "events come up")]
    return picture("The layers of panpan", bottom + 20, parts)


def sizes(package: Package, shown: Mapping[str, int]) -> Mapping[str, int]:
    """Return lines by folder (`core`, `capabilities/web`), in hundreds; a shown number stays if it is nearly right."""
    lines = Counter[str]()
    for module in package.modules:
        parts = module.path.relative_to(package.root / package.name).with_suffix("").parts
        for depth in (1, 2):
            lines["/".join(parts[:depth])] += len(module.text.splitlines()) if len(parts) >= depth else 0

    def figure(name: str, now: int) -> int:
        before = shown.get(name, 0)
        return before if before and abs(now - before) <= max(100, KEPT * before) else max(100, round(now, -2))

    return {name: figure(name, now) for name, now in lines.items()}


def shown_in(svg: str) -> Mapping[str, int]:
    """Return the lines by folder that a picture shows."""
    return {name: int(lines.replace(",", "")) for name, lines in re.findall(r'data-of="([^"]+)">([\d,]+)<', svg)}


def sized(y: float, name: str, shown: str, lines: int, most: int) -> Iterator[str]:
    """Yield the name of a folder, its lines as a bar, and their number after the bar."""
    length = max(2, BAR * lines / most)
    yield text(LEFT, y + 20, shown, "name")
    yield box(LEFT + 185, y + 8, length, ROW - 16, "bar", 2)
    yield text(LEFT + 191 + length, y + 20, f"{lines:,}", "quiet", more=f' data-of="{name}"')


def draw_modules(package: Package, before: str) -> str:
    """Draw each folder with its lines and imports, then each capability.

    Args:
        package: The package.
        before: The current picture, whose numbers stay while they are nearly right; "" if there is none.
    """
    lines = sizes(package, shown_in(before))
    names = [name for layer in layers_of(package.root) for name in layer]
    top = 140
    parts = [*_legend(), *_matrix(package, names, top)]
    most = max(lines[name] for name in names)
    for row, name in enumerate(names):
        parts += sized(top + ROW * row, name, label(package.root, name), lines[name], most)
    top += ROW * len(names) + 40
    parts.append(text(LEFT, top, "The capabilities, each with the features that it still imports", "name"))
    imports = defaultdict[str, set[str]](set)
    for importer, imported in between_features(package):
        imports[importer.split(".")[2]].add(imported.split(".")[2])
    folders = [f"capabilities/{name}" for name in package.capabilities]
    most = max(lines[folder] for folder in folders)
    y = top + 10.0
    for folder, name in zip(folders, package.capabilities, strict=True):
        parts += sized(y, folder, name, lines[folder], most)
        parts.append(text(GRID, y + 20, purpose(package.root, folder, 80), "quiet"))
        if imports[name]:
            y += 18
            parts.append(text(GRID, y + 20, f"imports {', '.join(sorted(imports[name]))}", "up"))
        y += ROW
    height = y + 10
    return picture("The folders of panpan, their sizes and their imports", height, parts)


def _legend() -> Iterator[str]:
    yield text(LEFT, 36, "Lines, and imports: the row imports the column", "name")
    for x, y, kind, words in ((LEFT, 56, "down", "down, as the layers allow"), (LEFT, 78, "up", "up, to be removed")):
        yield f'<circle cx="{x + 5}" cy="{y}" r="5" class="{kind}"/>'
        yield text(x + 18, y + 5, words, "quiet")


def _matrix(package: Package, names: Sequence[str], top: float) -> Iterator[str]:
    """Yield a row and a column for each folder, with a point where the row imports the column."""
    column = min(ROW, (WIDTH - GRID - 50) // len(names))
    width, height = column * len(names), ROW * len(names)
    for at, name in enumerate(names):
        x, y = GRID + column * at, top + ROW * at
        turned = f' transform="rotate(-50 {x + column / 2 + 3:g} {top - 8:g})"'
        yield text(x + column / 2 + 3, top - 8, name, more=turned)
        yield box(x, y, column, ROW, "self", 0)
    for at in range(len(names) + 1):
        yield f'<path class="grid" d="M{GRID} {top + ROW * at}h{width}M{GRID + column * at} {top}v{height}"/>'
    upwards = {_folders(pair) for pair in upward(package)}
    for importer, imported in sorted({_folders(pair) for pair in package.imports(for_types=True)}):
        if importer in names and imported in names and importer != imported:
            x, y = GRID + column * (names.index(imported) + 0.5), top + ROW * (names.index(importer) + 0.5)
            kind = "up" if (importer, imported) in upwards else "down"
            yield f'<circle cx="{x:g}" cy="{y:g}" r="6" class="{kind}"/>'


def _folders(pair: tuple[str, str]) -> tuple[str, str]:
    importer, imported = (f"{name}.".split(".")[1] for name in pair)
    return importer, imported


def draw_environment() -> str:
    """Draw the layers of a Python environment on top of each other, each with EnvDoctor's checks."""
    parts, left, top = [], 60, 20
    y = top
    for layer, title in LAYERS.items():
        checks = " · ".join(rule for rule, advice in ADVICE.items() if advice.layer == layer)
        lines = textwrap.wrap(checks, 100, break_on_hyphens=False)
        height = 40 + 20 * len(lines)
        parts += [box(left, y, WIDTH - 80, height), text(left + 14, y + 25, title[:1].upper() + title[1:], "name")]
        for row, words in enumerate(lines):
            parts.append(text(left + 14, y + 47 + 20 * row, words.strip(" ·"), "quiet"))
        y += height + 8
    bottom = y - 8
    parts += [arrow(40, bottom, top), sideways(24, (top + bottom) / 2, "judged from the bottom up")]
    return picture("The layers of an environment, as EnvDoctor judges them", bottom + 20, parts)


def drawings(root: Path) -> Mapping[Path, str]:
    """Return each picture of a checkout with its file."""
    package = Package(root)
    folder = root / IMAGES
    modules = folder / "modules.svg"
    before = modules.read_text(encoding="utf-8") if modules.exists() else ""
    return {
        folder / "layers.svg": draw_layers(root),
        modules: draw_modules(package, before),
        folder / "environment.svg": draw_environment(),
    }


if __name__ == "__main__":
    for path, svg in drawings(ROOT).items():
        path.write_text(svg, encoding="utf-8")
