"""Numbers in the cells of tables, as authors write them: `83.1 ± 0.3`, `1,234.5`, `82.7%`, `1.2e-3`, `92.0*`.

The rule: a cell is read only if all of it is understood. `< 0.001`, `45.2 / 46.1` and `12 of 15` are no single numbers.
"""

from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MAX_CHARS = 80
_MINUS = "\u2212\u2013\u2012\u2010\u2011"
_BLANKS = "\u00a0\u2009\u202f\u2007\u200a"
_MARKS = "*†‡§¶#↑↓▲▼△▽★☆✓°"
_NAME = compile_late(r"[A-Za-z]\d")
"""Part of names such as `X86`."""
_BARE_SCRIPT = compile_late(r"[\^_]\{[^{}]*\}")
_INNER_MARKS = compile_late(r"[*†‡§]+\s*(?=[(\[±])")
_NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d{1,3})?"
_POWER = compile_late(r"(?a)\s*[\u00d7x·*]\s*10\s*(?:\^\{\s*([-+]?\d{1,2})\s*[^\d{}]?\}|\^\s*([-+]?\d{1,2}))")
_LONE_POWER = compile_late(r"(?a)(?<![\d.,])10\^\{\s*([-+]?\d{1,2})\s*[^\d{}]?\}")
_RAISED_WHOLE = compile_late(r"(?<![.,\d])\d+\^\{\d+\}")
"""A whole number with a raised one: a power, or a footnote."""
_LARGE_POWER = compile_late(r"(?a)[eE][-+]?(?:[4-9]\d|\d{3,})")
"""More likely a power with the mark of a footnote."""
_CELL = compile_late(
    rf"(?a)(?P<currency>[$€£¥])?\s*\(?\s*(?P<value>{_NUMBER})\s*(?P<unit>%|‰)?\s*"
    rf"(?:(?:\(\s*)?(?:±|\+/-|\+-)\s*(?P<spread>{_NUMBER})\s*(?:%|‰)?\s*\)?|\(\s*(?P<brackets>{_NUMBER})\s*(?:%|‰)?\s*\)"
    rf"|[\[(]\s*{_NUMBER}\s*(?:[,;]|to|-)\s*{_NUMBER}\s*[\])])?\s*\)?\s*"
    r"(?P<unit_behind>%|‰|[A-Za-zµ°]{1,4}(?:/[a-z]{1,3})?)?"
)
_BELOW = compile_late(rf"_\{{\s*(?P<sign>±|\+/-|\+-)?\s*(?P<value>{_NUMBER})\s*%?\s*\}}")
_DECIMAL_COMMA = compile_late(r"(?<![\d.,])[-+]?(?:\d+,\d{1,2}|0,\d+|\d{4,},\d+|\d+,\d{4,})(?![\d,.])")
_EMPTY = frozenset({"", "-", "--", "---", "—", "n/a", "na", "nan", "?", "·", "/", "✗", "✓", "\u00d7", "x"})


@dataclass(frozen=True, slots=True)
class CellNumber:
    """The number of a cell."""

    value: str
    """Its digits as they are written; minus signs and powers of ten in the way of programs."""
    unit: str = ""
    spread: str = ""
    """Number behind ±."""
    aside: str = ""
    """Number in brackets behind it, or lowered, which may be a spread or something else."""


def read_cell(cell: str, *, has_decimal_comma: bool = False) -> CellNumber | None:
    """Return the number of a cell; None if it is not one number."""
    if len(cell) > _MAX_CHARS:
        return None
    text = _plain(cell)
    if has_decimal_comma:
        text = text.replace(".", "").replace(",", ".")
    below = _BELOW.search(text)
    text = _POWER.sub(lambda found: f"e{found[1] or found[2]}", text)
    text = _LONE_POWER.sub(lambda found: f"1e{found[1]}", text)
    if _RAISED_WHOLE.search(text) or _LARGE_POWER.search(text):
        return None
    text = _without_marks(text)
    found = _CELL.fullmatch(text)
    if found is None or text.count("(") != text.count(")") or text.count("[") != text.count("]"):
        return None
    unit = found["unit"] or found["unit_behind"] or found["currency"] or ""
    spread, aside = found["spread"] or "", found["brackets"] or ""
    if below and below["sign"]:
        spread = below["value"]
    elif below and below["value"][0] not in "+-":
        aside = aside or below["value"]
    return CellNumber(found["value"].lstrip("+"), unit, spread.lstrip("+"), aside.lstrip("+"))


def is_blank(cell: str) -> bool:
    """True if a cell says that there is no number, such as a dash."""
    return _plain(cell).lower() in _EMPTY


def is_several_numbers(cell: str) -> bool:
    """True if a cell holds numbers and is not one, such as `45.2 / 46.1` or `< 0.001`."""
    text = _without_marks(_plain(cell))
    letters = sum(char.isalpha() for char in text)
    digits = sum(char.isdigit() for char in text)
    return digits > letters and read_cell(cell) is None and not _NAME.search(text)


def has_numbers(cell: str) -> bool:
    """True if a cell is a number, or several."""
    return read_cell(cell) is not None or is_several_numbers(cell)


def is_in_brackets(cell: str) -> bool:
    """True if a cell is one number in brackets, as standard errors stand below estimates."""
    text = _plain(cell)
    return text.startswith("(") and text.endswith(")") and read_cell(text) is not None


def is_words(cell: str) -> bool:
    """True if a cell holds words: neither numbers, nor a sign that there is none."""
    return not is_blank(cell) and not has_numbers(cell)


def uses_decimal_comma(cells: list[str]) -> bool:
    """True if the numbers of a table are written like `83,1`."""
    plain = [_plain(cell) for cell in cells]
    return any(map(_DECIMAL_COMMA.search, plain)) and not any(
        "." in cell and read_cell(cell) is not None for cell in plain
    )


def _plain(cell: str) -> str:
    text = cell.translate({ord(char): "-" for char in _MINUS} | {ord(char): " " for char in _BLANKS})
    return text.replace("\u2217", "*").strip().removeprefix("**").removesuffix("**").strip()


def _without_marks(text: str) -> str:
    """Return text without raised and lowered marks, and signs of footnotes and of better or worse."""
    bare = _INNER_MARKS.sub(" ", _BARE_SCRIPT.sub("", text))
    return bare.strip().strip(_MARKS).strip()
