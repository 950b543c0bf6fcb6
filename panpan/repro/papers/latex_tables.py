"""Tables in the source of a paper in LaTeX. Macros are not expanded: of an unknown one its arguments stay."""

from collections.abc import Iterator, Sequence

from panpan.repro.papers.grid import GridCell, named_tables
from panpan.repro.papers.paper_table import MAX_CELL_CHARS, PaperTables, cut
from panpan.types.pattern import compile_late

_MAX_DEPTH = 8
_MAX_TEX_CHARS = 20_000
_FLOAT = compile_late(
    r"(?s)\\begin\{(table\*?|sidewaystable)\}.*?\\end\{\1\}|\\begin\{longtable\}.*?\\end\{longtable\}"
)
_TABULAR = compile_late(r"(?s)\\begin\{(tabular[*xy]?|tabulary|longtable)\}(.*?)\\end\{\1\}")
_STYLE = compile_late(
    r"\\(?:tiny|scriptsize|footnotesize|small|normalsize|large|bfseries|itshape|scshape|bf|it|em|rm|tt|sc|centering"
    r"|displaystyle|textstyle|left|right)\b\s*"
)
_COMMENT = compile_late(r"(?<!\\)%[^\n]*")
_ESCAPE = compile_late(r"\\([_%#&~-])")
_RULES = compile_late(
    r"\\(?:hline|toprule|midrule|bottomrule|addlinespace|specialrule|cmidrule|cline|Xhline)\b"
    r"(?:\([^()]*\))?(?:\[[^\]]*\])?(?:\{[^{}]*\})*"
)
_ENDING = compile_late(r"\\\\\*?(?:\[[^\]]*\])?|\\tabularnewline\b")
_SIGNS = {
    r"\pm": "±", r"\times": "\u00d7", r"\cdot": "·", r"\%": "%", r"\&": "&", r"\_": "_", r"\#": "#", r"\$": "$",
    r"\dagger": "†", r"\ddagger": "‡", r"\uparrow": "↑", r"\downarrow": "↓", r"\textpm": "±", r"\,": " ", r"\;": " ",
    r"\!": "", r"\ ": " ", r"\quad": " ", r"\qquad": " ", r"\approx": "≈", r"\sim": "~", r"\alpha": "\u03b1",
    r"\beta": "β", r"\gamma": "\u03b3", r"\lambda": "λ", r"\sigma": "\u03c3", r"\mu": "µ", r"\epsilon": "ε",
    r"\infty": "∞", r"\textdagger": "†", r"\leq": "≤", r"\geq": "≥", r"\checkmark": "✓", r"\newline": " ",
}  # fmt: skip
_SIGN = compile_late(r"\\(?:[A-Za-z]+|[^A-Za-z])")
_SCRIPT = compile_late(r"([\^_])\s*(?:\\text(?:rm|bf|it)?\s*)?(?:\{([^{}]*)\}|([A-Za-z0-9*†‡]))")
_ARGUMENT = compile_late(r"\\[A-Za-z]+\*?(?:\[[^\[\]]*\])?\{([^{}]*)\}")
_DROPPED = compile_late(
    r"\\(?:label|cite[a-z]*|ref|vspace|hspace|color|rowcolor|cellcolor|phantom|footnote(?:mark|text)?)"
    r"\*?(?:\[[^\[\]]*\])*\{[^{}]*\}"
)
_OPEN, _CLOSE = "\ue000", "\ue001"


def latex_tables(text: str) -> PaperTables:
    """Return the tables of a file in LaTeX, numbered as they come."""
    body = _COMMENT.sub("", text)
    title = next((plain_tex(found) for found in _arguments(body, "title")), "")
    return PaperTables(title=cut(title, MAX_CELL_CHARS), tables=named_tables(_grids(body)))


def latex_text(text: str) -> str:
    """Return the text of a file in LaTeX, with addresses as they are meant."""
    return _ESCAPE.sub(r"\1", _COMMENT.sub("", text))


def _grids(body: str) -> Iterator[tuple[str, str, Sequence[Sequence[GridCell]]]]:
    for number, found in enumerate(_FLOAT.finditer(body), 1):
        caption = next((plain_tex(each) for each in _arguments(found[0], "caption")), "")
        name = f"Table {number}"
        for one in _TABULAR.finditer(found[0]):
            yield name, f"{name}: {caption}" if caption else "", list(_lines(_without_columns(one[2])))


def _arguments(text: str, command: str) -> Iterator[str]:
    r"""Yield the arguments of `\command{…}`, braces in them included."""
    start = 0
    while (start := text.find(f"\\{command}", start)) >= 0:
        start += len(command) + 1
        at = start
        if text[at : at + 1] == "[":
            at = text.find("]", at) + 1
        if text[at : at + 1] == "{":
            end = _closing(text, at)
            yield text[at + 1 : end]
            start = end


def _closing(text: str, at: int) -> int:
    """Return the index of the brace that closes the one at `at`, or of the end."""
    depth = 0
    for index in range(at, len(text)):
        if text[index] == "\\":
            continue
        if text[index] in "{}" and text[index - 1 : index] != "\\":
            depth += 1 if text[index] == "{" else -1
            if depth == 0:
                return index
    return len(text)


def _without_columns(body: str) -> str:
    """Return the body of a tabular without its options and column types."""
    at = 0
    while True:
        while at < len(body) and body[at].isspace():
            at += 1
        if body[at : at + 1] == "[":
            at = body.find("]", at) + 1 or len(body)
        elif body[at : at + 1] == "{":
            at = _closing(body, at) + 1
        else:
            return body[at:]


def _lines(body: str) -> Iterator[Sequence[GridCell]]:
    hanging: dict[int, int] = {}
    for line in _ENDING.split(_RULES.sub(" ", body)):
        if line.strip():
            cells = [_cell(text) for text in line.replace(r"\&", _OPEN).split("&")]
            yield list(_without_covered(cells, hanging))


def _without_covered(cells: Sequence[GridCell], hanging: dict[int, int]) -> Iterator[GridCell]:
    """Yield the cells that are not the empty ones which TeX wants below a cell of several rows.

    `hanging`: rows that are still covered, by column.
    """
    column = 0
    for cell in cells:
        is_covered = hanging.get(column, 0) > 0 and not cell.text
        if hanging.get(column, 0) > 0:
            hanging[column] -= 1
        if not is_covered:
            yield cell if not hanging.get(column) else GridCell(cell.text, cell.width)
            hanging.update({at: cell.height - 1 for at in range(column, column + cell.width) if cell.height > 1})
        column += cell.width


def _cell(text: str) -> GridCell:
    text = text.replace(_OPEN, r"\&").strip()
    width = height = 1
    for command, arguments in (("multicolumn", 3), ("multirow", 3), ("multicolumn", 3)):
        if text.startswith(f"\\{command}"):
            parts = _braced(text[len(command) + 1 :], arguments)
            if len(parts) == arguments:
                count = int(parts[0]) if parts[0].strip().isdecimal() and len(parts[0].strip()) < 4 else 1
                width, height = (count, height) if command == "multicolumn" else (width, count)
                text = parts[-1].strip()
    return GridCell(plain_tex(text), width, height)


def _braced(text: str, count: int) -> list[str]:
    parts: list[str] = []
    at = 0
    while len(parts) < count and at < len(text):
        if text[at] == "[":
            at = text.find("]", at) + 1 or len(text)
        elif text[at] == "{":
            end = _closing(text, at)
            parts.append(text[at + 1 : end])
            at = end + 1
        elif text[at] == "*" and parts:
            parts.append("*")  # \multirow{2}*{…}
            at += 1
        else:
            at += 1
    return parts


def plain_tex(tex: str) -> str:
    """Return a short piece of TeX as text, with raised and lowered parts as `^{a}` and `_{a}`."""
    text = _STYLE.sub("", _DROPPED.sub("", tex[:_MAX_TEX_CHARS])).replace("~", " ")
    text = _SIGN.sub(lambda found: _SIGNS.get(found[0], found[0]), text.replace(r"\$", _CLOSE)).replace("$", "")
    text = text.replace(_CLOSE, "$").replace("{,}", ",").replace("{±}", "±").replace("{\u00d7}", "\u00d7")
    for _ in range(_MAX_DEPTH):
        scripted = _SCRIPT.sub(lambda found: f"{found[1]}{_OPEN}{found[2] or found[3]}{_CLOSE}", text)
        shorter = _ARGUMENT.sub(r"\1", scripted)
        if shorter == text:
            break
        text = shorter
    text = text.replace("{", "").replace("}", "").replace(_OPEN, "{").replace(_CLOSE, "}")
    return " ".join(text.replace(r"\!", "").split())
